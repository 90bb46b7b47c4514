/**
 * The limits on requests, as the options of `serve` set them.
 */
import type { Logger } from 'pino';
import type { Limits } from '../../http/auth/request-limits.ts';
import { TokenBuckets } from '../../shared/token-buckets.ts';
import { refuseMissing } from '../errors.ts';
import type { ServeOptions } from './options.ts';

/** Opens the connection to Redis, if there is one. It closes when `stack` is disposed. */
export async function openLimits(
  options: ServeOptions,
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
  if (redis === undefined) return { ...limits, requests: new TokenBuckets(rate) };
  const { RedisRateLimiter } = await import('../../redis/rate-limiter.ts').catch(
    refuseMissing('@redis/client'),
  );
  return { ...limits, requests: stack.use(await RedisRateLimiter.connect(redis, rate, log)) };
}
