/**
 * Authenticates callers by bearer tokens (RFC 6750). Every request calls the storage, so a revoked token is refused
 * from the next request on.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  scopes as allScopes,
  stateOf,
  type Credential,
  type Grant,
  type Scope,
} from '../access.ts';
import type { GrantAndPage, IdentityStorage } from '../identity-storage.ts';
import { Cache } from '../cache.ts';
import type { Verifier } from '../oidc/verifier.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import { isProblem, Problem } from '../problem.ts';
import { credentialOf, isToken } from '../token.ts';
import { headerCount } from './headers.ts';
import { Lookups } from './lookups.ts';
import type { RequestLimits } from './request-limits.ts';
import { isJwt, SignOn } from './sign-on.ts';
import type { TokenUses } from './token-uses.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the token grants. Set only on routes that require a token. */
    grant: Grant;
    /** The page that the request needs, if it was read with the grant. */
    page?: PlantPage | undefined;
  }
}

/** Maximum number of cached Authorization headers with known tokens, and with unknown ones. */
const maxKnownTokens = 10_000;
const maxUnknownTokens = 4_096;
/** A longer header is not cached: each request with one needs its own lookup. */
const maxCachedHeaderChars = 100;
/**
 * How long an unknown token is cached. New tokens are not delayed, because they are stored before they are printed.
 * A token that a restore brings back is delayed if a client sent it while it was missing.
 */
const unknownTokenMs = 1_000;

/** Reads the query of a request only if its token needs a lookup: anybody can send long queries. */
type QueryReader = () => PlantQuery | undefined;
const noQuery: QueryReader = () => undefined;

export class Authentication {
  readonly #storage: IdentityStorage;
  /**
   * Hashes of known tokens, because hashing takes a tenth of the time of a short request. Unknown tokens have
   * their own cache, so they cannot evict these.
   */
  readonly #knownTokens = new Cache<Credential>(maxKnownTokens);
  readonly #unknownTokens = new Cache<{ untilMs: number }>(maxUnknownTokens);
  /** By the place that the storage names. */
  readonly #lookups = new WeakMap<object, Lookups>();
  readonly #limits: RequestLimits;
  /** Those whose last request a limit refused: no page is read for a request that probably gets none. */
  readonly #refused = new WeakSet<Credential>();
  readonly #uses: TokenUses;
  /** Undefined if only our own tokens are accepted. */
  readonly #signOn: SignOn | undefined;

  constructor(
    storage: IdentityStorage,
    limits: RequestLimits,
    uses: TokenUses,
    verifier?: Verifier,
  ) {
    this.#storage = storage;
    this.#limits = limits;
    this.#uses = uses;
    this.#signOn = verifier && new SignOn(verifier);
  }

  /** Returns an onRequest hook that refuses requests without a valid token that grants one of the scopes. */
  requireScope(...scopes: [Scope, ...Scope[]]) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { grant } = await this.#authenticate(request, reply);
      assertScope(grant, scopes, reply);
      request.grant = grant;
    };
  }

  /** The same for lists. `pageOf` returns what a request with a valid query reads, if that is one page. */
  requireScopeToList(pageOf: (request: FastifyRequest) => PlantQuery | undefined) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const query = () => (request.readQuery().count === 0 ? pageOf(request) : undefined);
      const { grant, page } = await this.#authenticate(request, reply, query);
      assertScope(grant, ['plants:read'], reply);
      request.grant = grant;
      request.page = page;
    };
  }

  /**
   * Returns an onRequest hook that refuses requests without a valid token. A token of an identity provider needs at
   * least one scope, because it may be meant for another application.
   */
  requireToken() {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { grant } = await this.#authenticate(request, reply);
      if (!grant.isStored) assertScope(grant, allScopes, reply);
      request.grant = grant;
    };
  }

  async #authenticate(
    request: FastifyRequest,
    reply: FastifyReply,
    query: QueryReader = noQuery,
  ): Promise<GrantAndPage> {
    const { authorization } = request.headers;
    if (authorization === undefined) {
      setChallenge(reply);
      throw new Problem(
        'invalid-token',
        'Send a token in the header "Authorization: Bearer <token>". Create one with "plant-store token create".',
      );
    }

    const refuse = (detail: string): never => {
      this.#limits.countFailure(request, reply);
      throw invalidToken(reply, detail);
    };
    if (headerCount(request.raw, 'authorization') > 1) {
      return refuse('There are two Authorization headers; send one.');
    }
    const known = this.#knownTokens.get(authorization) ?? this.#signOn?.get(authorization);
    const identified = await (known === undefined
      ? this.#lookUp(authorization, request, reply, query, refuse)
      : this.#identify(known, this.#refused.has(known) ? noQuery : query));
    if (identified === undefined)
      return refuse('There is no such token. Check that it was created for this service.');
    const { grant } = identified;
    const nowMs = Date.now();
    const state = stateOf(grant, nowMs);
    if (state !== 'active') return refuse(`The token is ${state}; get a new one.`);
    const admitted = this.#limits.admit(grant, reply);
    if (admitted !== undefined) {
      await admitted.catch((error: unknown) => {
        if (known !== undefined) this.#refused.add(known);
        throw error;
      });
    }
    if (known !== undefined) this.#refused.delete(known);
    this.#uses.note(grant, nowMs);
    return identified;
  }

  async #lookUp(
    authorization: string,
    request: FastifyRequest,
    reply: FastifyReply,
    query: QueryReader,
    refuse: (detail: string) => never,
  ): Promise<GrantAndPage | undefined> {
    const unknown = this.#unknownTokens.get(authorization);
    if (unknown !== undefined && performance.now() < unknown.untilMs) return undefined;
    const address = this.#limits.addressOf(request.raw);
    const token = parseHeader(authorization, refuse);
    if (this.#signOn !== undefined && isJwt(token)) {
      this.#limits.assertFewFailures(request, reply); // verifying it would cost much more than a lookup
      const verified = await this.#signOn
        .verify(authorization, token, address)
        .catch((error: unknown) => {
          throw isProblem(error, 'invalid-token') ? refuse(error.detail) : error;
        });
      return this.#identifyUnknown(verified, query, address);
    }
    if (!isToken(token))
      return refuse('This is not a Plant Store token. Check that you copied all of it.');
    const credential = credentialOf(token);
    const isCached = authorization.length <= maxCachedHeaderChars;
    // Without the cache, a client that a limit refuses is not recognized.
    const identified = await this.#identifyUnknown(credential, isCached ? query : noQuery, address);
    if (isCached) {
      if (identified !== undefined) this.#knownTokens.set(authorization, credential);
      else this.#unknownTokens.set(authorization, { untilMs: performance.now() + unknownTokenMs });
    }
    return identified;
  }

  #identifyUnknown(
    credential: Credential,
    query: QueryReader,
    address: string | undefined,
  ): Promise<GrantAndPage | undefined> {
    const place = this.#storage.placeOf(credential);
    const lookups = this.#lookups.get(place) ?? new Lookups(this.#storage.maxLookups);
    this.#lookups.set(place, lookups);
    return lookups.run(address, () => this.#identify(credential, query));
  }

  async #identify(
    credential: Credential,
    readQuery: QueryReader,
  ): Promise<GrantAndPage | undefined> {
    const query = readQuery();
    if (query !== undefined) return this.#storage.identifyWithPage(credential, query);
    const grant = await this.#storage.identify(credential);
    return grant && { grant };
  }
}

/** Throws `insufficient-scope` if the grant has none of the scopes. */
function assertScope({ caller }: Grant, scopes: readonly Scope[], reply: FastifyReply): void {
  if (scopes.some((scope) => caller.scopes.has(scope))) return;
  const [first = ''] = scopes; // the challenge cannot express "or"
  const granted = [...caller.scopes].join(' ') || 'none';
  const detail = `This operation requires the scope ${scopes.join(' or ')}; the token has ${granted}.`;
  throw insufficientScope(reply, first, detail);
}

function parseHeader(authorization: string, refuse: (detail: string) => never): string {
  const [, token] = /^bearer +(\S+)$/i.exec(authorization) ?? [];
  if (token === undefined)
    return refuse('The header must have the form "Authorization: Bearer <token>".');
  return token;
}

/** A problem with its challenge (RFC 6750, section 3.1). */
export function invalidToken(reply: FastifyReply, detail: string): Problem {
  setChallenge(reply, 'error="invalid_token"');
  return new Problem('invalid-token', detail);
}

/** The same, for scopes that the token does not have. `scope` is a list, separated by spaces. */
export function insufficientScope(reply: FastifyReply, scope: string, detail: string): Problem {
  setChallenge(reply, `error="insufficient_scope", scope="${scope}"`);
  return new Problem('insufficient-scope', detail);
}

export function setChallenge(reply: FastifyReply, parameters?: string): void {
  reply.header('www-authenticate', parameters === undefined ? 'Bearer' : `Bearer ${parameters}`);
}
