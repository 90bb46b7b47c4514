/**
 * The limits on requests, as the options of `serve` set them.
 */
import type { Logger } from 'pino';
import type { Limits } from '../../http/auth/request-limits.ts';
import { TokenBuckets, type Rate } from '../../rate-limit.ts';
import { Refusal, UsageError } from '../../refusal.ts';

export interface LimitOptions {
  rateLimit: Rate | 'off';
  rateLimitRedis?: string | undefined;
  authFailureLimit: Rate | 'off';
  maxRequestsInProgress: number;
  trustProxy: readonly string[];
}

export function checkLimits({ rateLimit, rateLimitRedis }: LimitOptions): void {
  if (rateLimitRedis !== undefined && rateLimit === 'off') {
    throw new UsageError('--rate-limit-redis requires --rate-limit, such as --rate-limit 200/s.');
  }
}

/** Opens the connection to Redis, if there is one. It closes when `stack` is disposed. */
export async function openLimits(
  options: LimitOptions,
  stack: AsyncDisposableStack,
  log: Logger,
): Promise<Limits> {
  const { rateLimit: rate, rateLimitRedis: redis, authFailureLimit } = options;
  const limits: Limits = {
    authFailures: authFailureLimit === 'off' ? undefined : authFailureLimit,
    maxRequestsInProgress: options.maxRequestsInProgress,
    trustedProxies: options.trustProxy,
  };
  if (rate === 'off') return limits;
  if (redis === undefined)
    return { ...limits, requests: { rate, limiter: new TokenBuckets(rate) } };
  const { RedisRateLimiter } = await import('../../redis/rate-limiter.ts').catch(
    refuseMissingClient,
  );
  const limiter = stack.use(await RedisRateLimiter.connect(redis, rate, log));
  return { ...limits, requests: { rate, limiter } };
}

/** `@redis/client` is an optional dependency. */
function refuseMissingClient(cause: unknown): never {
  if (!(cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND')) {
    throw cause;
  }
  throw new Refusal(
    'The client of Redis is not installed. Install it with "npm install @redis/client".',
    { cause },
  );
}
