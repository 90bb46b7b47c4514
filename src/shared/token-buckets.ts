/**
 * Limits the rate of requests with token buckets. A bucket is full at first. Each request takes one unit, and the
 * bucket refills steadily, completely in one window.
 */

/** Maximum number of requests of a rate. */
export const maxRequests = 1_000_000;

export interface Rate {
  /** How many requests a full bucket allows, and how many units it gets in each window. */
  readonly requests: number;
  /** A second, a minute or an hour. */
  readonly windowSeconds: number;
}

const windows: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

/** A rate such as 200/s. Undefined if it is not valid. */
export function parseRate(text: string): Rate | undefined {
  const [, count = '0', unit = ''] = /^([1-9]\d*)\/([smh])$/.exec(text) ?? [];
  const rate = { requests: Number(count), windowSeconds: windows[unit] ?? 0 };
  return rate.requests >= 1 && rate.requests <= maxRequests ? rate : undefined;
}

export function formatRate({ requests, windowSeconds }: Rate): string {
  const [unit] = Object.entries(windows).find(([, seconds]) => seconds === windowSeconds) ?? [];
  return `${requests}/${unit}`;
}

/** The state of a bucket after a request. */
export interface BucketState {
  /** False if the bucket was empty. */
  readonly isAllowed: boolean;
  /** How many requests the bucket allows now. */
  readonly remaining: number;
  /** Milliseconds until the bucket gets another unit. */
  readonly nextMs: number;
}

export interface RateLimiter {
  readonly rate: Rate;
  /** Takes one unit from the bucket of this key, unless it is empty. Never rejects. */
  take(key: string): BucketState | Promise<BucketState>;
}

/** Maximum number of buckets. Beyond it, the least recently used one is evicted, and would be full if used again. */
export const maxBuckets = 10_000;

interface Bucket {
  level: number;
  refilledMs: number;
}

/** The buckets of one process. */
export class TokenBuckets implements RateLimiter {
  readonly rate: Rate;
  readonly #unitMs: number;
  /** In the order of their last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(rate: Rate) {
    this.rate = rate;
    this.#unitMs = (rate.windowSeconds * 1_000) / rate.requests;
  }

  take(key: string): BucketState {
    const bucket = this.#refilled(key);
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > maxBuckets) {
      const [oldest = key] = this.#buckets.keys();
      this.#buckets.delete(oldest);
    }
    const isAllowed = bucket.level >= 1;
    if (isAllowed) bucket.level--;
    return this.#stateOf(bucket, isAllowed);
  }

  /** The state that `take` would return if it took nothing. */
  peek(key: string): BucketState {
    const bucket = this.#refilled(key);
    return this.#stateOf(bucket, bucket.level >= 1);
  }

  #refilled(key: string): Bucket {
    const nowMs = performance.now();
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return { level: this.rate.requests, refilledMs: nowMs };
    const units = (nowMs - bucket.refilledMs) / this.#unitMs;
    bucket.level = Math.min(this.rate.requests, bucket.level + units);
    bucket.refilledMs = nowMs;
    return bucket;
  }

  #stateOf({ level }: Bucket, isAllowed: boolean): BucketState {
    return { isAllowed, remaining: Math.floor(level), nextMs: (1 - (level % 1)) * this.#unitMs };
  }
}
