/**
 * Token buckets in Redis, which several processes share. While Redis does not respond, each process counts by itself,
 * so that no request fails or waits for it.
 */
import { createClient } from '@redis/client';
import type { Logger } from 'pino';
import {
  TokenBuckets,
  type BucketState,
  type Rate,
  type RateLimiter,
} from '../shared/token-buckets.ts';

/** How long a request can wait for Redis, and the start of the service too. */
const timeoutMs = 250;
/** After a failure, one request in this time asks Redis again. */
const retryMs = 1_000;
/** Maximum number of commands without a reply: as many as the service has connections. */
export const maxCommands = 10_000;

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
  readonly #client: ReturnType<typeof createClient>;
  readonly #rate: Rate;
  readonly #local: TokenBuckets;
  readonly #log: Logger;
  #isFailing = false;
  #retryAtMs = 0;

  private constructor(url: string, rate: Rate, log: Logger) {
    this.#log = log;
    this.#rate = rate;
    this.#local = new TokenBuckets(rate);
    this.#client = createClient({
      url,
      disableOfflineQueue: true,
      commandsQueueMaxLength: maxCommands, // else a Redis that hangs for days fills the memory
    });
    this.#client.on('error', (err: unknown) => this.#fail(err));
    this.#client.on('ready', () => (this.#retryAtMs = 0));
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
    const { requests, windowSeconds } = this.#rate;
    const taken = this.#client.eval(takeFromBucket, {
      keys: [`plant-store:${requests}/${windowSeconds}:${key}`], // another limit has other buckets
      arguments: [requests, windowSeconds * 1_000].map(String),
    });
    const { promise: noReply, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error(`no reply in ${timeoutMs} ms`)), timeoutMs);
    try {
      const reply = await Promise.race([taken, noReply]);
      const [isAllowed, remaining, nextMs] = reply as [number, number, number]; // what the script returns
      return { isAllowed: isAllowed === 1, remaining, nextMs };
    } finally {
      clearTimeout(timer);
    }
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
