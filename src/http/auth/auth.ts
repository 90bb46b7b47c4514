/**
 * Authenticates callers by bearer tokens (RFC 6750). Every request calls the storage, so a revoked token is refused
 * from the next request on.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  stateOf,
  type Caller,
  type Credential,
  type Grant,
  type Scope,
} from '../../access/access.ts';
import type { IdentityStorage } from '../../access/identity-storage.ts';
import { managerRequired } from '../../access/user-storage.ts';
import { Cache } from '../../shared/cache.ts';
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { maxAgeMs } from '../../oidc/options.ts';
import type { Verifier } from '../../oidc/verifier.ts';
import type { PlantPage } from '../../plants/plant-storage.ts';
import { fixedProblem, insufficientScope, isProblem, Problem, tokenEnded } from '../../problem.ts';
import { credentialOf, isToken } from '../../access/token.ts';
import { headerCount } from '../response/headers.ts';
import type { Operation } from '../routes/operation.ts';
import type { RequestLimits } from './request-limits.ts';
import type { TokenUses } from './token-uses.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the token grants. Set only on routes that require a token. */
    grant: Grant;
    /** Ends the count of the request as one in progress, if it is counted. */
    leave?: (() => void) | undefined;
    /** The page that the request needs, if it is read while the grant is checked. */
    page?: Promise<PlantPage> | undefined;
  }
}

/** Maximum characters of the cached Authorization headers. */
const maxKnownChars = 16 * 1024 * 1024;
/** The overhead of a cached header and its grant, in characters. Each owner in reach takes more. */
const entryOverheadChars = 1_500;
const ownerChars = 8;
/**
 * Maximum number of JWTs verified at a time, because they share the four threads of Node with other work. A client
 * (client-address.ts) can have half of them.
 */
const maxVerifications = 4;
/** Maximum number of JWTs that wait for it, and for how long. */
const maxWaitingVerifications = 2_048;
const maxVerificationWaitMs = 1_000;

/** What an Authorization header stands for. */
interface Entry {
  header: string;
  credential: Credential;
  /** When a JWT has to be verified again, on the clock of performance.now(). */
  untilMs: number;
  /** The last one. Undefined if the header was not accepted before. */
  grant?: Grant | undefined;
}

type Known = Entry & { grant: Grant };

/** Starts to read the page that a request needs; undefined if its query is not valid, or it needs more than one page. */
export type PageReader = (
  request: FastifyRequest,
  caller: Caller,
) => Promise<PlantPage> | undefined;

/** The part of an operation that decides who can call it. */
export type Authorized = Pick<Operation, 'forInvitations' | 'forManagers'> & {
  readonly scopes: readonly Scope[];
};

export class Authentication {
  readonly #storage: IdentityStorage;
  /** Stale for `maxAgeMs`, if the provider withdraws the key of a JWT: nobody notices but its operator. */
  readonly #known = new Cache<Known>(maxKnownChars, charsOf);
  readonly #verifications = new FairSemaphore({
    max: maxVerifications,
    maxOfKey: maxVerifications / 2,
    maxWaiting: maxWaitingVerifications,
    maxWaitMs: maxVerificationWaitMs,
    refusal: () =>
      new Problem('overloaded', 'Too many requests with new tokens are waiting. Try again later.'),
  });
  readonly #limits: RequestLimits;
  readonly #uses: TokenUses;
  /** Undefined if only our own tokens are accepted. */
  readonly #verifier: Verifier | undefined;

  constructor(
    storage: IdentityStorage,
    limits: RequestLimits,
    uses: TokenUses,
    verifier?: Verifier,
  ) {
    this.#storage = storage;
    this.#limits = limits;
    this.#uses = uses;
    this.#verifier = verifier;
  }

  /**
   * Returns an onRequest hook that refuses requests without a valid token, and if there are scopes, without one of them.
   * If the storage has to check a cached grant first, the page is read meanwhile.
   */
  requireScope(operation: Authorized, readPage?: PageReader) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { authorization } = request.headers;
      if (authorization === undefined) {
        reply.header('www-authenticate', 'Bearer'); // no error, because nothing was sent (RFC 6750, section 3.1)
        throw refused(
          'Send a token in the header "Authorization: Bearer <token>". If you have none, ask whoever runs this service for one.',
        );
      }
      try {
        if (headerCount(request.raw, 'authorization') > 1) {
          throw refused('Send exactly one Authorization header.');
        }
        const known = this.#known.get(authorization);
        const entry = isCurrent(known) ? known : await this.#entryOf(authorization, request, reply);
        const { credential, grant: former } = entry;
        // Before the storage is asked, so a refused request costs it nothing.
        const isAdmitted = former !== undefined && stateOf(former, Date.now()) === 'active';
        const admission = isAdmitted ? this.#limits.admit(former, reply) : undefined;
        if (admission !== undefined) await admission;
        let page: Promise<PlantPage> | undefined;
        const readAhead = () => {
          if (!isAdmitted || !grantsAny(former, operation.scopes)) return;
          page = readPage?.(request, former.caller);
          page?.catch(() => {}); // it may not be needed
        };
        const grant = await this.#storage.identify(credential, former, readPage && readAhead);
        if (grant === undefined) {
          this.#known.delete(entry.header); // so that what is sent with it is no longer charged to its family
          throw refused('There is no such token. Check that it was created for this service.');
        }
        if (grant !== former) this.#known.set(entry.header, { ...entry, grant });
        const nowMs = Date.now();
        const state = stateOf(grant, nowMs);
        if (state !== 'active') throw tokenEnded(state);
        if (!isAdmitted) await this.#limits.admit(grant, reply);
        this.#uses.note(grant, nowMs);
        assertAllowed(grant, operation);
        request.grant = grant;
        if (grant === former) request.page = page;
      } catch (error) {
        if (isProblem(error, 'invalid-token')) this.#limits.checkFailures(request, reply, true);
        throw error;
      }
    };
  }

  /** The same grant as it is now, for a request that has waited. Throws `invalid-token` if it has ended. */
  async identifyAgain(grant: Grant): Promise<Grant> {
    const { tokenHash, caller } = grant;
    const [, , , claims] = caller.identified;
    const { store } = caller;
    const credential = claims === undefined ? { tokenHash, store } : { tokenHash, claims };
    const now = await this.#storage.identify(credential, grant);
    const state = now === undefined ? 'revoked' : stateOf(now, Date.now());
    if (now === undefined || state !== 'active') throw tokenEnded(state);
    return now;
  }

  /** The family of the token, if it has been accepted before. It can have ended since. */
  familyOf({ headers: { authorization = '' } }: IncomingMessage): string | undefined {
    return this.#known.get(authorization)?.grant.family;
  }

  async #entryOf(
    authorization: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Entry> {
    const token = tokenIn(authorization);
    // The scheme can have any case, and any number of spaces behind it. One of these forms is cached.
    const header = `Bearer ${token}`;
    const known = this.#known.get(header);
    if (isCurrent(known)) return known;
    if (this.#verifier !== undefined && isJwt(token)) {
      // Verifying it would cost much more than a lookup.
      if (known === undefined) this.#limits.checkFailures(request, reply, false);
      const untilMs = performance.now() + maxAgeMs;
      const client = this.#limits.clientOf(request);
      return { header, credential: await this.#verify(this.#verifier, token, client), untilMs };
    }
    if (isToken(token)) return { header, credential: credentialOf(token), untilMs: Infinity };
    throw refused('This is not a Plant Store token. Check that you copied all of it.');
  }

  /** Anybody can make up tokens that need a verification, so their number in progress is limited for each client. */
  async #verify(verifier: Verifier, token: string, client: string): Promise<Credential> {
    const key = await verifier.findKey(token); // outside of the limit, because it can wait for the provider
    return this.#verifications.run(client, () => verifier.verify(token, key));
  }
}

/** Whether the header has been accepted before, and its JWT need not be verified again. */
function isCurrent(known: Known | undefined): known is Known {
  return known !== undefined && performance.now() < known.untilMs;
}

function charsOf({ header, grant: { caller } }: Known): number {
  const owners = caller.read === 'all' ? 0 : caller.read.length + caller.write.length;
  return header.length + entryOverheadChars + owners * ownerChars;
}

/** Whether the text has the form of a JWT. Our own tokens have no dots. */
function isJwt(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

/** Whether the grant has one of the scopes. Without any, none is needed. */
function grantsAny({ caller }: Grant, scopes: readonly Scope[]): boolean {
  return scopes.length === 0 || scopes.some((scope) => caller.scopes.has(scope));
}

/** Throws a Problem if the token cannot call the operation, whoever its user is. */
function assertAllowed(grant: Grant, { scopes, forInvitations, forManagers }: Authorized): void {
  if (grant.invitation !== undefined && forInvitations !== true) throw invitationRestricted();
  if (grantsAny(grant, scopes)) {
    if (forManagers === true && grant.role !== 'manager') throw managerRequired();
    return;
  }
  const [first = ''] = scopes; // the challenge cannot express "or"
  const granted = [...grant.caller.scopes].join(' ') || 'none';
  const detail = `This operation requires the scope ${scopes.join(' or ')}, but the token has ${granted}.`;
  throw insufficientScope(first, detail);
}

const invitationRestricted = fixedProblem(
  'token-restricted',
  'This token is an invitation. It can only create a token, with "POST /tokens".',
);

/** The token in the header. */
export function tokenIn(authorization = ''): string {
  const [, token] = /^bearer +(\S+)$/i.exec(authorization) ?? [];
  if (token !== undefined) return token;
  throw refused('Send the header as "Authorization: Bearer <token>".');
}

function refused(detail: string): Problem {
  return new Problem('invalid-token', detail);
}
