/**
 * Limits the requests of each family of tokens, and the failed authentications of each address. The fields of
 * draft-ietf-httpapi-ratelimit-headers describe the limit in a response.
 *
 * A limit that is off costs nothing, and requests with known tokens never reach the limit of failures.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Grant } from '../../access/access.ts';
import { fixedProblem, Problem } from '../../problem.ts';
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import {
  formatRate,
  TokenBuckets,
  type BucketState,
  type Rate,
  type RateLimiter,
} from '../../shared/token-buckets.ts';
import { maxWaitingRequests } from '../limits.ts';
import { TrustedProxies } from './client-address.ts';

/** Maximum number of requests of a family of tokens that wait for changes. They are not in progress. */
const maxWaitingOfFamily = 16;

export interface Limits {
  /** The rate of requests with one token, and those created with it. */
  requests?: RateLimiter | undefined;
  /** The rate of failed authentications from one address. */
  authFailures?: Rate | undefined;
  /** Maximum number of requests in progress with one token, and those created with it. */
  maxRequestsInProgress?: number | undefined;
  /** Addresses and networks of proxies that name their client. */
  trustedProxies?: readonly string[] | undefined;
}

export class RequestLimits {
  readonly #requests: RateLimiter | undefined;
  readonly #failures: TokenBuckets | undefined;
  readonly #maxInProgress: number;
  readonly #inProgress: FairSemaphore;
  readonly #waiting = new FairSemaphore({ max: maxWaitingRequests, maxOfKey: maxWaitingOfFamily });
  readonly #proxies: TrustedProxies;
  readonly #log: Logger;
  #canWarnOfProxy: boolean;
  /** Each family and each client is logged at most once a minute. */
  readonly #reports = new TokenBuckets({ requests: 1, windowSeconds: 60 });

  constructor(limits: Limits, log: Logger) {
    const { requests, authFailures, trustedProxies = [] } = limits;
    this.#requests = requests;
    this.#failures = authFailures && new TokenBuckets(authFailures);
    this.#maxInProgress = limits.maxRequestsInProgress ?? Infinity;
    this.#inProgress = new FairSemaphore({ maxOfKey: this.#maxInProgress });
    this.#proxies = new TrustedProxies(trustedProxies);
    this.#canWarnOfProxy = trustedProxies.length === 0;
    this.#log = log;
  }

  /** The client of a request, which can be behind trusted proxies. */
  clientOf({ raw }: FastifyRequest): string {
    return this.#proxies.clientOf(raw);
  }

  /** Admits a request with a valid token, or throws `rate-limited`. Resolves if the rate is limited. */
  admit(grant: Grant, reply: FastifyReply): Promise<void> | undefined {
    const max = this.#maxInProgress;
    if (max < Infinity) {
      reply.request.leave = this.#hold(this.#inProgress, 'in-progress', max, grant, reply);
    }
    return this.#requests && this.#take(this.#requests, grant, reply);
  }

  async #take(limiter: RateLimiter, grant: Grant, reply: FastifyReply): Promise<void> {
    const state = await limiter.take(grant.family);
    setFields(reply, 'token', limiter.rate, state);
    if (state.isAllowed) return;
    const rate = formatRate(limiter.rate);
    this.#reportGrant(grant, `more than ${rate}`);
    const reason = `Requests with this token are limited to ${rate}.`;
    throw rateLimited(reply, secondsUntilNext(state), reason);
  }

  /** Throws `rate-limited` if too many authentications from this address have failed. Counts one more if it `failed`. */
  checkFailures(request: FastifyRequest, reply: FastifyReply, failed: boolean): void {
    if (this.#failures === undefined) return;
    const client = this.clientOf(request);
    const state = failed ? this.#failures.take(client) : this.#failures.peek(client);
    if (state.isAllowed) return;
    const rate = formatRate(this.#failures.rate);
    const { 'x-forwarded-for': forwardedFor, forwarded = forwardedFor } = request.headers;
    if (forwarded !== undefined && this.#canWarnOfProxy) {
      this.#canWarnOfProxy = false;
      this.#log.warn('the clients of a proxy share a limit: name the proxy with --trust-proxy');
    }
    this.#report(client, { client }, `more than ${rate} failed authentications`);
    setFields(reply, 'failed-authentication', this.#failures.rate, state);
    const reason = `Failed authentications from your address are limited to ${rate}.`;
    throw rateLimited(reply, secondsUntilNext(state), reason);
  }

  /** From now on, the request waits for changes instead of being in progress. Throws if too many do. */
  beginWait(grant: Grant, reply: FastifyReply): void {
    if (this.#waiting.isFull) throw tooManyWaiting();
    this.#hold(this.#waiting, 'waiting', maxWaitingOfFamily, grant, reply);
    reply.request.leave?.();
  }

  /** Counts the request until it closes, or until the result is called. Throws `rate-limited` if there is no room. */
  #hold(
    semaphore: FairSemaphore,
    name: 'in-progress' | 'waiting',
    max: number,
    grant: Grant,
    reply: FastifyReply,
  ): () => void {
    if (reply.raw.destroyed) return () => {}; // no `close` would follow
    const { family } = grant;
    if (!semaphore.tryAcquire(family)) {
      this.#reportGrant(grant, `more than ${max} ${name.replace('-', ' ')}`);
      reply
        .header('ratelimit-policy', `"${name}";q=${max};qu="concurrent-requests"`)
        .header('ratelimit', `"${name}";r=0`);
      const subject = name === 'waiting' ? 'Waiting requests' : 'Requests in progress';
      throw rateLimited(reply, 1, `${subject} with this token are limited to ${max}.`);
    }
    let isHeld = true;
    const release = () => {
      if (isHeld) semaphore.release(family);
      isHeld = false;
    };
    // Before the listener that starts the next request of the connection (connections.ts).
    reply.raw.prependListener('close', release);
    return release;
  }

  #reportGrant(grant: Grant, limit: string): void {
    const { family, tokenId: token, storeName: store, userName: user } = grant;
    this.#report(family, { token, store, user }, limit);
  }

  /** Logs who is refused, so that the operator finds them. `key` is a family or a client. */
  #report(key: string, who: object, limit: string): void {
    if (!this.#reports.take(key).isAllowed) return;
    this.#log.warn({ ...who, limit }, 'requests are refused');
  }
}

function setFields(reply: FastifyReply, name: string, rate: Rate, state: BucketState): void {
  reply
    .header('ratelimit-policy', `"${name}";q=${rate.requests};w=${rate.windowSeconds}`)
    .header('ratelimit', `"${name}";r=${state.remaining};t=${secondsUntilNext(state)}`);
}

const tooManyWaiting = fixedProblem(
  'overloaded',
  'Too many requests wait for changes. Try again later, or without "wait".',
);

function rateLimited(reply: FastifyReply, seconds: number, reason: string): Problem {
  reply.header('retry-after', seconds);
  return new Problem('rate-limited', `${reason} Try again in ${seconds} s.`);
}

/** At least 1, because the fields have whole seconds. */
function secondsUntilNext({ nextMs }: BucketState): number {
  return Math.max(1, Math.ceil(nextMs / 1_000));
}
