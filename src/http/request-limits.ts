/**
 * Limits the requests of each family of tokens, and the failed authentications of each address. The fields of
 * draft-ietf-httpapi-ratelimit-headers describe the limit in a response.
 *
 * A limit that is off costs nothing, and requests with known tokens never reach the limit of failures.
 */
import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Grant } from '../access.ts';
import { Cache } from '../cache.ts';
import { Problem } from '../problem.ts';
import {
  formatRate,
  TokenBuckets,
  type BucketState,
  type Rate,
  type RateLimiter,
} from '../rate-limit.ts';
import { TrustedProxies } from './client-address.ts';
import { clientAt } from './lookups.ts';

/** How many refusals of a client are sent at once. Each costs about as much as a short list, so others are held. */
const promptRefusals: Rate = { requests: 100, windowSeconds: 1 };
/** How long they are held, on average. */
const refusalDelayMs = 250;
/** How often the log names the same client. */
const reportEveryMs = 60_000;
/** Maximum number of clients that the log has named. */
const maxReported = 1_000;

export interface Limits {
  /** The rate of requests with one token, and those created with it. */
  requests?: { rate: Rate; limiter: RateLimiter } | undefined;
  /** The rate of failed authentications from one address. */
  authFailures?: Rate | undefined;
  /** Maximum number of requests in progress with one token, and those created with it. */
  maxRequestsInProgress?: number | undefined;
  /** Addresses and networks of proxies that name their client. */
  trustedProxies?: readonly string[] | undefined;
}

export class RequestLimits {
  readonly #requests: { limiter: RateLimiter; policy: Policy } | undefined;
  readonly #failures: { buckets: TokenBuckets; policy: Policy } | undefined;
  readonly #maxInProgress: number;
  readonly #inProgress = new Map<string, number>();
  readonly #proxies: TrustedProxies | undefined;
  readonly #log: Logger;
  #hasWarnedOfProxy = false;
  /** The refusals of each family that are not held. */
  readonly #promptRefusals = new TokenBuckets(promptRefusals);
  /** By family. */
  readonly #reported = new Cache<{ untilMs: number }>(maxReported);

  constructor(limits: Limits, log: Logger) {
    const { requests, authFailures, trustedProxies = [] } = limits;
    this.#requests = requests && {
      limiter: requests.limiter,
      policy: policyOf('token', requests.rate),
    };
    this.#failures = authFailures && {
      buckets: new TokenBuckets(authFailures),
      policy: policyOf('failed-authentication', authFailures),
    };
    this.#maxInProgress = limits.maxRequestsInProgress ?? Infinity;
    this.#proxies = trustedProxies.length === 0 ? undefined : new TrustedProxies(trustedProxies);
    this.#log = log;
  }

  /** The address of the client, which can be behind trusted proxies. */
  addressOf(request: IncomingMessage): string | undefined {
    return this.#proxies === undefined
      ? request.socket.remoteAddress
      : this.#proxies.clientOf(request);
  }

  /**
   * Admits a request with a valid token. Returns undefined if it is admitted at once, or a promise, which rejects with
   * `rate-limited` if the request is refused.
   */
  admit(grant: Grant, reply: FastifyReply): Promise<void> | undefined {
    if (!this.#enter(grant, reply)) {
      const problem = tooManyInProgress(reply, this.#maxInProgress);
      return this.#refuse(grant, `more than ${this.#maxInProgress} in progress`, problem);
    }
    if (this.#requests === undefined) return undefined;
    const { limiter, policy } = this.#requests;
    const state = limiter.take(grant.family);
    if (!(state instanceof Promise)) return this.#admitIf(state, policy, grant, reply);
    return state.then((counted) => this.#admitIf(counted, policy, grant, reply));
  }

  #admitIf(
    state: BucketState,
    policy: Policy,
    grant: Grant,
    reply: FastifyReply,
  ): Promise<void> | undefined {
    setFields(reply, policy, state);
    if (state.isAllowed) return undefined;
    const reason = `Requests with this token are limited to ${policy.rate}.`;
    const problem = rateLimited(reply, secondsUntilNext(state), reason);
    return this.#refuse(grant, `more than ${policy.rate}`, problem);
  }

  /**
   * Rejects with the problem: at once, unless the client causes many of them. A connection has one request in progress,
   * so holding a refusal slows down a client that ignores `Retry-After`.
   */
  async #refuse(grant: Grant, limit: string, problem: Problem): Promise<never> {
    this.#report(grant, limit);
    if (!this.#promptRefusals.take(grant.family).isAllowed) {
      await pause(refusalDelayMs * (0.5 + Math.random())); // at random, so that they do not end together
    }
    throw problem;
  }

  /** Throws `rate-limited` if too many authentications from this address have failed. */
  assertFewFailures(request: FastifyRequest, reply: FastifyReply): void {
    if (this.#failures === undefined) return;
    const { buckets, policy } = this.#failures;
    this.#refuseIfEmpty(buckets.peek(this.#clientOf(request)), policy, request, reply);
  }

  /** Counts a failed authentication. Throws `rate-limited` if there were too many before. */
  countFailure(request: FastifyRequest, reply: FastifyReply): void {
    if (this.#failures === undefined) return;
    const { buckets, policy } = this.#failures;
    this.#refuseIfEmpty(buckets.take(this.#clientOf(request)), policy, request, reply);
  }

  #clientOf({ raw }: FastifyRequest): string {
    return clientAt(this.addressOf(raw));
  }

  #refuseIfEmpty(
    state: BucketState,
    policy: Policy,
    { headers }: FastifyRequest,
    reply: FastifyReply,
  ): void {
    if (state.isAllowed) return;
    const isForwarded = (headers['x-forwarded-for'] ?? headers.forwarded) !== undefined;
    if (isForwarded && this.#proxies === undefined && !this.#hasWarnedOfProxy) {
      this.#hasWarnedOfProxy = true;
      this.#log.warn('the clients of a proxy share a limit: name the proxy with --trust-proxy');
    }
    setFields(reply, policy, state);
    throw rateLimited(
      reply,
      secondsUntilNext(state),
      `Requests from your address without a valid token are limited to ${policy.rate}.`,
    );
  }

  /** Counts a request that is in progress. Returns false if there are too many. */
  #enter({ family }: Grant, reply: FastifyReply): boolean {
    if (this.#maxInProgress === Infinity) return true;
    const inProgress = this.#inProgress.get(family) ?? 0;
    if (inProgress >= this.#maxInProgress) return false;
    if (reply.raw.destroyed) return true; // the client has disconnected, so no `close` would follow
    this.#inProgress.set(family, inProgress + 1);
    reply.raw.on('close', () => this.#leave(family));
    return true;
  }

  #leave(family: string): void {
    const left = (this.#inProgress.get(family) ?? 0) - 1;
    if (left > 0) this.#inProgress.set(family, left);
    else this.#inProgress.delete(family);
  }

  /** Logs which client is refused, so that the operator finds it. */
  #report({ family, tokenId, storeName, userName }: Grant, limit: string): void {
    const nowMs = performance.now();
    if (nowMs < (this.#reported.get(family)?.untilMs ?? 0)) return;
    this.#reported.set(family, { untilMs: nowMs + reportEveryMs });
    const client = { token: tokenId, store: storeName, user: userName };
    this.#log.warn({ ...client, limit }, 'requests are refused');
  }
}

interface Policy {
  name: string;
  /** As in the settings: `200/s`. */
  rate: string;
  /** The value of RateLimit-Policy. */
  field: string;
}

function policyOf(name: string, rate: Rate): Policy {
  const { requests, windowSeconds } = rate;
  return { name, rate: formatRate(rate), field: `"${name}";q=${requests};w=${windowSeconds}` };
}

function tooManyInProgress(reply: FastifyReply, max: number): Problem {
  const name = '"in-progress"';
  reply
    .header('ratelimit-policy', `${name};q=${max};qu="concurrent-requests"`)
    .header('ratelimit', `${name};r=0`);
  return rateLimited(reply, 1, `${max} requests with this token are in progress, the maximum.`);
}

function setFields(reply: FastifyReply, { name, field }: Policy, state: BucketState): void {
  reply
    .header('ratelimit-policy', field)
    .header('ratelimit', `"${name}";r=${state.remaining};t=${secondsUntilNext(state)}`);
}

function rateLimited(reply: FastifyReply, seconds: number, reason: string): Problem {
  reply.header('retry-after', seconds);
  return new Problem('rate-limited', `${reason} Send this one again after ${seconds} s.`);
}

/** At least 1, because the fields have whole seconds. */
function secondsUntilNext({ nextMs }: BucketState): number {
  return Math.max(1, Math.ceil(nextMs / 1_000));
}
