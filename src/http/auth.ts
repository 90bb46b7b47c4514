/**
 * Bearer tokens (RFC 6750): who is calling. The storage is asked with each request, so that a
 * revocation holds from the next one on.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { stateOf, type Caller, type Credential, type Grant, type Scope } from '../access.ts';
import type { IdentityStorage } from '../identity-storage.ts';
import { Cache } from '../cache.ts';
import { Problem } from '../problem.ts';
import { hashToken, isToken } from '../token.ts';
import { headerCount } from './headers.ts';
import { Lookups } from './lookups.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; set on a route that asks for a scope, and nowhere else. */
    caller: Caller;
  }
}

/** Tokens that are known, and those that are not: by the header that they came in. */
const knownMax = 10_000;
const unknownMax = 4_096;
/** A longer header is not cached: each request with one waits for a lookup of its own. */
const cachedHeaderChars = 100;
/**
 * How long a token stays unknown. That delays no new token: it is shown only after it is stored, and
 * nobody can guess its 256 bits, so nobody has asked for it before. It does delay a token that a restore
 * brings back, if somebody used it while it was gone.
 */
const unknownMs = 1_000;

export class Authentication {
  readonly #storage: IdentityStorage;
  /**
   * Hashes of tokens that the storage knew: to check and hash a token is a tenth of a short request.
   * What anybody can send without a token does not push them out.
   */
  readonly #known = new Cache<Credential>(knownMax);
  readonly #unknown = new Cache<{ untilMs: number }>(unknownMax);
  readonly #lookups: Lookups;

  constructor(storage: IdentityStorage) {
    this.#storage = storage;
    this.#lookups = new Lookups(storage.lookupsMax);
  }

  /** An onRequest hook: lets a request pass whose token is good and carries the scope. */
  requireScope(scope: Scope) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const caller = await this.#authenticate(request, reply);
      if (!caller.scopes.has(scope)) {
        challenge(reply, `error="insufficient_scope", scope="${scope}"`);
        throw new Problem(
          'insufficient-scope',
          `This operation requires the scope ${scope}; the token has ${[...caller.scopes].join(' ')}.`,
        );
      }
      request.caller = caller;
    };
  }

  async #authenticate(request: FastifyRequest, reply: FastifyReply): Promise<Caller> {
    const { authorization } = request.headers;
    if (authorization === undefined) {
      challenge(reply);
      throw new Problem(
        'invalid-token',
        'Send a token in the header "Authorization: Bearer <token>". Create one with "plant-store token create".',
      );
    }

    const refuse = (detail: string): never => {
      challenge(reply, 'error="invalid_token"');
      throw new Problem('invalid-token', detail);
    };
    if (headerCount(request.raw, 'authorization') > 1) {
      return refuse('There are two Authorization headers; send one.');
    }
    const known = this.#known.get(authorization);
    const grant = await (known === undefined
      ? this.#lookUp(authorization, request, refuse)
      : this.#storage.identify(known));
    if (grant === undefined)
      return refuse('There is no such token. Check that it was created for this service.');
    const state = stateOf(grant, Date.now());
    return state === 'active' ? grant.caller : refuse(`The token is ${state}; get a new one.`);
  }

  async #lookUp(
    authorization: string,
    request: FastifyRequest,
    refuse: (detail: string) => never,
  ): Promise<Grant | undefined> {
    const unknown = this.#unknown.get(authorization);
    if (unknown !== undefined && performance.now() < unknown.untilMs) return undefined;
    const credential = credentialOf(authorization, refuse);
    const grant = await this.#lookups.run(request.socket.remoteAddress, () =>
      this.#storage.identify(credential),
    );
    if (authorization.length <= cachedHeaderChars) {
      if (grant !== undefined) this.#known.set(authorization, credential);
      else this.#unknown.set(authorization, { untilMs: performance.now() + unknownMs });
    }
    return grant;
  }
}

function credentialOf(authorization: string, refuse: (detail: string) => never): Credential {
  const [, token] = /^bearer +(\S+)$/i.exec(authorization) ?? [];
  if (token === undefined) return refuse('The header must have the form "Bearer <token>".');
  if (!isToken(token))
    return refuse('This is not a Plant Store token. Check that you copied all of it.');
  return { tokenHash: hashToken(token) };
}

function challenge(reply: FastifyReply, parameters?: string): void {
  reply.header('www-authenticate', parameters === undefined ? 'Bearer' : `Bearer ${parameters}`);
}
