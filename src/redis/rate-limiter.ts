/**
 * Token buckets in Redis, which several processes share. While Redis does not respond, each process counts by itself,
 * so that no request fails or waits for it.
 */
import { createClient } from '@redis/client';
import type { Logger } from 'pino';
import { RateLimiterRedis, RateLimiterRes, RLWrapperTimeouts } from 'rate-limiter-flexible';
import { TokenBuckets, type BucketState, type Rate, type RateLimiter } from '../rate-limit.ts';

/** How long a request can wait for Redis, and the start of the service too. */
const timeoutMs = 250;
/** After a failure, one request in this time asks Redis again. */
const retryMs = 1_000;
/** Maximum number of commands without a reply: as many as the service has connections. */
export const maxCommands = 10_000;

/**
 * Replaces the fixed window of the library with a token bucket. Returns how much of the bucket is used, which is more
 * than its capacity if it was empty, and the milliseconds until its next unit. The clock is that of Redis.
 */
const takeFromBucket = `
local units, capacity, windowMs = tonumber(ARGV[1]), tonumber(ARGV[3]), ARGV[4] * 1000
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + time[2] / 1000
local bucket = redis.call('HMGET', KEYS[1], 'level', 'refilledMs')
local level = tonumber(bucket[1]) or capacity
local elapsedMs = math.max(0, nowMs - (tonumber(bucket[2]) or nowMs))
level = math.min(capacity, level + elapsedMs * capacity / windowMs)
local used = capacity + units
if level >= units then
  level = level - units
  used = capacity - math.floor(level)
end
redis.call('HSET', KEYS[1], 'level', level, 'refilledMs', nowMs)
redis.call('PEXPIRE', KEYS[1], windowMs)
return {used, math.ceil((1 - level % 1) * windowMs / capacity)}
`;

export class RedisRateLimiter implements RateLimiter, AsyncDisposable {
  readonly #client: ReturnType<typeof createClient>;
  readonly #shared: RLWrapperTimeouts;
  readonly #local: TokenBuckets;
  readonly #log: Logger;
  #isFailing = false;
  #retryAtMs = 0;

  private constructor(url: string, rate: Rate, log: Logger) {
    this.#log = log;
    this.#local = new TokenBuckets(rate);
    this.#client = createClient({
      url,
      disableOfflineQueue: true,
      commandsQueueMaxLength: maxCommands, // else a Redis that hangs for days fills the memory
    });
    this.#client.on('error', (err: unknown) => this.#fail(err));
    this.#client.on('ready', () => (this.#retryAtMs = 0));
    const limiter = new RateLimiterRedis({
      storeClient: this.#client,
      useRedisPackage: true,
      rejectIfRedisNotReady: true,
      customIncrTtlLuaScript: takeFromBucket,
      keyPrefix: `plant-store:${rate.requests}/${rate.windowSeconds}`, // another limit has other buckets
      points: rate.requests,
      duration: rate.windowSeconds,
    });
    this.#shared = new RLWrapperTimeouts({ limiter, timeoutMs });
  }

  /** Waits for the connection, but not for long. It is opened again whenever it fails. */
  static async connect(url: string, rate: Rate, log: Logger): Promise<RedisRateLimiter> {
    const limiter = new RedisRateLimiter(url, rate, log);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    // It rejects only if the limiter is disposed while it connects.
    limiter.#client.connect().then(() => resolve(), resolve);
    await promise;
    clearTimeout(timer);
    return limiter;
  }

  async take(key: string): Promise<BucketState> {
    const nowMs = performance.now();
    if (nowMs < this.#retryAtMs) return this.#local.take(key);
    if (this.#isFailing) this.#retryAtMs = nowMs + retryMs; // others do not wait for this attempt
    try {
      const state = stateOf(await this.#shared.consume(key), true);
      this.#recover();
      return state;
    } catch (error) {
      if (error instanceof RateLimiterRes) {
        this.#recover();
        return stateOf(error, false);
      }
      this.#fail(error);
      return this.#local.take(key);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
  }

  #fail(err: unknown): void {
    this.#retryAtMs = performance.now() + retryMs;
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#log.warn({ err }, 'Redis is not available; each process counts requests by itself');
  }

  #recover(): void {
    this.#retryAtMs = 0;
    if (!this.#isFailing) return;
    this.#isFailing = false;
    this.#log.info('Redis is available again');
  }
}

function stateOf(
  { remainingPoints, msBeforeNext }: RateLimiterRes,
  isAllowed: boolean,
): BucketState {
  return { isAllowed, remaining: remainingPoints, nextMs: msBeforeNext };
}
