import { channel } from 'node:diagnostics_channel';
import { TimeoutError } from './errors.ts';

/**
 * For metrics, after each change: `{ lane, busy, waiting }`. In the lane `reads`, `busy` counts reads that were
 * sent; in `transactions` and `checks`, it counts connections in use.
 */
const poolChanged = channel('plant-store:pool');

/** At most `count` holders at a time. Others wait in order, and not longer than they say. */
export class Semaphore {
  readonly #lane: string;
  readonly #count: number;
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(lane: string, count: number) {
    this.#lane = lane;
    this.#count = count;
    this.#free = count;
  }

  /** Rejects with what `timeoutError` returns after `waitMsMax`. */
  async acquire(
    waitMsMax: number,
    timeoutError: () => Error = () => new TimeoutError(),
  ): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      this.#publish();
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    this.#publish();
    const timer = setTimeout(() => {
      this.#waiting.delete(resolve);
      this.#publish();
      reject(timeoutError());
    }, waitMsMax);
    await promise.finally(() => clearTimeout(timer));
  }

  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
    } else {
      this.#waiting.delete(next);
      next();
    }
    this.#publish();
  }

  #publish(): void {
    if (!poolChanged.hasSubscribers) return;
    const [lane, busy, waiting] = [this.#lane, this.#count - this.#free, this.#waiting.size];
    poolChanged.publish({ lane, busy, waiting });
  }
}
