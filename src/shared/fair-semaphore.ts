/**
 * Limits what runs at the same time, in total and for each key, such as a user or a client. The rest waits, and the keys
 * take turns.
 */
import { RoundRobin } from './round-robin.ts';

interface FairSemaphoreOptions {
  /** Maximum number of holders. */
  max?: number;
  /** Maximum number of holders of one key. */
  maxOfKey?: number;
  /** Maximum number of waiting calls. Beyond it, the key with the most of them loses its oldest one. */
  maxWaiting?: number;
  maxWaitMs?: number;
  /** The error for calls that wait too long, or exceed `maxWaiting`. */
  refusal?: () => Error;
}

interface Waiting {
  key: string;
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

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#canStart(key))
      this.#start(key); // without a wait
    else await this.#wait(key);
    try {
      return await work();
    } finally {
      this.release(key);
    }
  }

  /** Rejects with the refusal after `maxWaitMs`. Otherwise, call `release` once. */
  async acquire(key: string): Promise<void> {
    if (this.#canStart(key)) this.#start(key);
    else await this.#wait(key);
  }

  release(key: string): void {
    this.#running--;
    const ofKey = (this.#runningOfKey.get(key) ?? 0) - 1;
    if (ofKey > 0) this.#runningOfKey.set(key, ofKey);
    else this.#runningOfKey.delete(key);
    const next = this.#waiting.take((each) => this.#canStart(each));
    if (next === undefined) return;
    this.#start(next.key);
    next.start();
  }

  #canStart(key: string): boolean {
    const { max = Infinity, maxOfKey = Infinity } = this.#options;
    return this.#running < max && (this.#runningOfKey.get(key) ?? 0) < maxOfKey;
  }

  #start(key: string): void {
    this.#running++;
    this.#runningOfKey.set(key, (this.#runningOfKey.get(key) ?? 0) + 1);
  }

  async #wait(key: string): Promise<void> {
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
    };
    const waiting = { key, start: resolve, refuse };
    this.#waiting.add(key, waiting);
    const { maxWaitMs } = this.#options;
    const timer = maxWaitMs === undefined ? undefined : setTimeout(refuse, maxWaitMs);
    await promise.finally(() => clearTimeout(timer));
  }
}
