/**
 * Token buckets in Redis, which several processes share. While Redis does not respond, each process counts by itself,
 * so that no request fails or waits for Redis.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '@redis/client';
import type { Logger } from 'pino';
import {
  TokenBuckets,
  type BucketState,
  type Rate,
  type RateLimiter,
} from '../shared/token-buckets.ts';

/** How long a request, or the start of the service, can wait for Redis. */
const timeoutMs = 250;

/** Returns 1 if the bucket was not empty, its whole units, and the milliseconds until its next one. The clock is that of Redis. */
const takeFromBucket = `
local capacity, windowMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + time[2] / 1000
local bucket = redis.call('HMGET', KEYS[1], 'level', 'refilledMs')
local level = tonumber(bucket[1]) or capacity
local elapsedMs = math.max(0, nowMs - (tonumber(bucket[2]) or nowMs))
level = math.min(capacity, level + elapsedMs * capacity / windowMs)
local isAllowed = level >= 1 and 1 or 0
level = level - isAllowed
redis.call('HSET', KEYS[1], 'level', level, 'refilledMs', nowMs)
redis.call('PEXPIRE', KEYS[1], windowMs)
return {isAllowed, math.floor(level), math.ceil((1 - level % 1) * windowMs / capacity)}
`;

export class RedisRateLimiter implements RateLimiter, AsyncDisposable {
  readonly rate: Rate;
  readonly #client: ReturnType<typeof createClient>;
  readonly #local: TokenBuckets;
  readonly #log: Logger;
  #isFailing = false;
  /** The number of commands without a reply. */
  #pending = 0;

  private constructor(url: string, rate: Rate, log: Logger) {
    this.#log = log;
    this.rate = rate;
    this.#local = new TokenBuckets(rate);
    this.#client = createClient({ url, disableOfflineQueue: true });
    this.#client.on('error', (err: unknown) => this.#fail(err));
  }

  /** Waits for the connection up to `timeoutMs`. The connection is opened again whenever it fails. */
  static async connect(url: string, rate: Rate, log: Logger): Promise<RedisRateLimiter> {
    const limiter = new RedisRateLimiter(url, rate, log);
    // Rejects only if the limiter is disposed while it connects.
    const connected = limiter.#client.connect().catch(() => {});
    await Promise.race([connected, pause(timeoutMs, undefined, { ref: false })]);
    return limiter;
  }

  /**
   * While Redis fails, one command at a time checks whether it is back. Other requests neither wait nor send commands,
   * which would fill the memory.
   */
  async take(key: string): Promise<BucketState> {
    if (this.#isFailing && this.#pending > 0) return this.#local.take(key);
    try {
      const state = await this.#takeShared(key);
      this.#recover();
      return state;
    } catch (error) {
      this.#fail(error);
      return this.#local.take(key);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
  }

  async #takeShared(key: string): Promise<BucketState> {
    const { requests, windowSeconds } = this.rate;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => reject(new Error(`no reply in ${timeoutMs} ms`)), timeoutMs);
    this.#pending++;
    this.#client
      .eval(takeFromBucket, {
        keys: [`plant-store:${requests}/${windowSeconds}:${key}`], // each limit has its own buckets
        arguments: [requests, windowSeconds * 1_000].map(String),
      })
      .finally(() => {
        clearTimeout(timer);
        this.#pending--;
      })
      .then(resolve, reject);
    const [isAllowed, remaining, nextMs] = (await promise) as [number, number, number]; // what the script returns
    return { isAllowed: isAllowed === 1, remaining, nextMs };
  }

  #fail(err: unknown): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#log.warn({ err }, 'Redis is not available; each process counts requests by itself');
  }

  #recover(): void {
    if (!this.#isFailing) return;
    this.#isFailing = false;
    this.#log.info('Redis is available again');
  }
}
