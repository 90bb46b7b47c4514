import { poolChannel, type PoolLane } from '../channels.ts';
import { TimeoutError } from './errors.ts';

/** `count` is the maximum number of concurrent holders. Others wait in order, each for a limited time. */
export class Semaphore {
  readonly #server: string;
  readonly #lane: PoolLane;
  readonly #count: number;
  #free: number;
  readonly #waiting = new Set<() => void>();

  /** `server` and `lane` are its names in the metrics. */
  constructor(server: string, lane: PoolLane, count: number) {
    this.#server = server;
    this.#lane = lane;
    this.#count = count;
    this.#free = count;
  }

  /** After `maxWaitMs`, rejects with the error that `timeoutError` returns. */
  async acquire(
    maxWaitMs: number,
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
    }, maxWaitMs);
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
    if (!poolChannel.hasSubscribers) return;
    const [busy, waiting] = [this.#count - this.#free, this.#waiting.size];
    poolChannel.publish({ server: this.#server, lane: this.#lane, busy, waiting });
  }
}
