/**
 * Limits what runs at the same time, in total and for each key, such as a user or a client. The rest waits, and the keys
 * take turns. The limits can be of anything that holders have in different numbers, such as bytes.
 */
import { RoundRobin } from './round-robin.ts';

interface FairSemaphoreOptions {
  /** Maximum number of holders, or of what they hold. */
  max?: number;
  /** The same for one key. */
  maxOfKey?: number;
  /** Maximum number of waiting calls. Beyond it, the key with the most of them loses its oldest one. */
  maxWaiting?: number;
  maxWaitMs?: number;
  /** The error for calls that wait too long, or exceed `maxWaiting`. */
  refusal?: () => Error;
}

interface Waiting {
  key: string;
  weight: number;
  start: () => void;
  refuse: () => void;
}

export class FairSemaphore {
  readonly #options: FairSemaphoreOptions;
  readonly #runningOfKey = new Map<string, number>();
  #running = 0;
  readonly #waiting = new RoundRobin<Waiting>();

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
  }

  /** Whether there is no room for any key. */
  get isFull(): boolean {
    return this.#running >= (this.#options.max ?? Infinity);
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (!this.tryAcquire(key)) await this.#wait(key, 1); // without a wait if there is room
    try {
      return await work();
    } finally {
      this.release(key);
    }
  }

  /** Rejects with the refusal after `maxWaitMs`. Otherwise, release the same weight, at once or in parts. */
  async acquire(key: string, weight = 1): Promise<void> {
    if (!this.tryAcquire(key, weight)) await this.#wait(key, weight);
  }

  /** Returns false if it would have to wait, also for earlier calls of the key, which can need more. */
  tryAcquire(key: string, weight = 1): boolean {
    const canStart = !this.#waiting.has(key) && this.#canStart(key, weight);
    if (canStart) this.#add(key, weight);
    return canStart;
  }

  release(key: string, weight = 1): void {
    this.#add(key, -weight);
    this.#startWaiting();
  }

  #startWaiting(): void {
    for (;;) {
      const next = this.#waiting.take((each, item) => this.#canStart(each, item.weight));
      if (next === undefined) return;
      this.#add(next.key, next.weight);
      next.start();
    }
  }

  #canStart(key: string, weight: number): boolean {
    const { max = Infinity, maxOfKey = Infinity } = this.#options;
    return this.#running + weight <= max && (this.#runningOfKey.get(key) ?? 0) + weight <= maxOfKey;
  }

  #add(key: string, weight: number): void {
    this.#running += weight;
    const ofKey = (this.#runningOfKey.get(key) ?? 0) + weight;
    if (ofKey > 0) this.#runningOfKey.set(key, ofKey);
    else this.#runningOfKey.delete(key);
  }

  async #wait(key: string, weight: number): Promise<void> {
    const { maxWaiting = Infinity, refusal = () => new Error('too many wait') } = this.#options;
    if (this.#waiting.size >= maxWaiting) {
      const longest = this.#waiting.oldestOfMoreThan(key);
      if (longest === undefined) throw refusal();
      longest.refuse();
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const refuse = () => {
      this.#waiting.delete(key, waiting);
      reject(refusal());
      this.#startWaiting(); // those behind it can need less
    };
    const waiting = { key, weight, start: resolve, refuse };
    this.#waiting.add(key, waiting);
    const { maxWaitMs } = this.#options;
    const timer = maxWaitMs === undefined ? undefined : setTimeout(refuse, maxWaitMs);
    await promise.finally(() => clearTimeout(timer));
  }
}
