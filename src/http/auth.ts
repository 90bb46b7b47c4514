/**
 * Authenticates callers by bearer tokens (RFC 6750). Every request calls the storage, so a revoked token is refused
 * from the next request on.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  scopes as allScopes,
  stateOf,
  type Caller,
  type Credential,
  type Grant,
  type Scope,
} from '../access.ts';
import type { IdentityStorage } from '../identity-storage.ts';
import { Cache } from '../cache.ts';
import type { Verifier } from '../oidc/verifier.ts';
import type { PlantPage } from '../plant-storage.ts';
import { isProblem, Problem } from '../problem.ts';
import { credentialOf, isToken } from '../token.ts';
import { headerCount, setChallenge } from './headers.ts';
import { Lookups } from './lookups.ts';
import type { RequestLimits } from './request-limits.ts';
import { isJwt, SignOn } from './sign-on.ts';
import type { TokenUses } from './token-uses.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the token grants. Set only on routes that require a token. */
    grant: Grant;
    /** The page that the request needs, if it is read while the grant is checked. */
    page?: Promise<PlantPage> | undefined;
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

/** Starts to read the page that a request with a valid query needs; undefined if it needs more than one page. */
type PageReader = (request: FastifyRequest, caller: Caller) => Promise<PlantPage> | undefined;

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
      const grant = await this.#authenticate(request, reply);
      assertScope(grant, scopes, reply);
      request.grant = grant;
    };
  }

  /** The same for lists. If the storage has to check a cached grant first, the page is read meanwhile. */
  requireScopeToList(readPage: PageReader) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      let ahead: { grant: Grant; page: Promise<PlantPage> | undefined } | undefined;
      const grant = await this.#authenticate(request, reply, (cached) => {
        if (!canList(cached) || request.readQuery().count > 0) return;
        ahead = { grant: cached, page: readPage(request, cached.caller) };
        ahead.page?.catch(() => {}); // it may not be needed
      });
      assertScope(grant, ['plants:read'], reply);
      request.grant = grant;
      if (ahead?.grant === grant) request.page = ahead.page;
    };
  }

  /**
   * Returns an onRequest hook that refuses requests without a valid token. A token of an identity provider needs at
   * least one scope, because it may be meant for another application.
   */
  requireToken() {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const grant = await this.#authenticate(request, reply);
      if (!grant.isStored) assertScope(grant, allScopes, reply);
      request.grant = grant;
    };
  }

  async #authenticate(
    request: FastifyRequest,
    reply: FastifyReply,
    onCheck?: (cached: Grant) => void,
  ): Promise<Grant> {
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
    const grant = await (known === undefined
      ? this.#lookUp(authorization, request, reply, refuse)
      : this.#storage.identify(known, this.#refused.has(known) ? undefined : onCheck));
    if (grant === undefined)
      return refuse('There is no such token. Check that it was created for this service.');
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
    return grant;
  }

  async #lookUp(
    authorization: string,
    request: FastifyRequest,
    reply: FastifyReply,
    refuse: (detail: string) => never,
  ): Promise<Grant | undefined> {
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
      return this.#identifyUnknown(verified, address);
    }
    if (!isToken(token))
      return refuse('This is not a Plant Store token. Check that you copied all of it.');
    const credential = credentialOf(token);
    const grant = await this.#identifyUnknown(credential, address);
    if (authorization.length <= maxCachedHeaderChars) {
      if (grant !== undefined) this.#knownTokens.set(authorization, credential);
      else this.#unknownTokens.set(authorization, { untilMs: performance.now() + unknownTokenMs });
    }
    return grant;
  }

  #identifyUnknown(
    credential: Credential,
    address: string | undefined,
  ): Promise<Grant | undefined> {
    const place = this.#storage.placeOf(credential);
    const lookups = this.#lookups.get(place) ?? new Lookups(this.#storage.maxLookups);
    this.#lookups.set(place, lookups);
    return lookups.run(address, () => this.#storage.identify(credential));
  }
}

/** Whether a request with it can list plants now. */
function canList(grant: Grant): boolean {
  return grant.caller.scopes.has('plants:read') && stateOf(grant, Date.now()) === 'active';
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
