/**
 * Wakes those who wait for changes of a store: at once after a write of this process, and soon after one of another. However
 * many wait, a process reads one number of each store.
 */
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { ChangeLog } from './change-log.ts';

/** How often to look at a store for which somebody waits. With the time of the look, less than 0.5 s. */
const lookIntervalMs = 400;
/** Stores that one statement reads, and waiters that wake in an iteration of the event loop. Both take less than 1 ms. */
const maxStores = 500;
const maxWoken = 64;

/** Somebody who waits. Without signals and events, a waiting request takes less memory. */
export class Waiter {
  readonly store: number;
  /** The last change that it knows. */
  position: number;
  /** If true, it waits no longer. */
  isOver = false;
  /** Ends the wait in progress. */
  wake = (): void => {};

  constructor(store: number, position: number) {
    this.store = store;
    this.position = position;
  }

  end(): void {
    this.isOver = true;
    this.wake();
  }
}

export class Watch {
  readonly #log: Pick<ChangeLog, 'positions'>;
  readonly #stopping: AbortSignal;
  /** By store. No set is empty. */
  readonly #waiting = new Map<number, Set<Waiter>>();
  #timer: NodeJS.Timeout | undefined;
  /** Stores to look at. */
  readonly #due = new Set<number>();
  #isLooking = false;

  /** Once `stopping` is aborted, nobody waits any more. */
  constructor(log: Pick<ChangeLog, 'positions'>, stopping: AbortSignal) {
    this.#log = log;
    this.#stopping = stopping;
    stopping.addEventListener('abort', () => {
      for (const ofStore of this.#waiting.values()) for (const waiter of ofStore) waiter.end();
    });
  }

  /** Resolves if the store can have a change after the position of the waiter, or if it ends. */
  async wait(waiter: Waiter): Promise<void> {
    if (this.#stopping.aborted) waiter.end();
    if (waiter.isOver) return;
    const { store } = waiter;
    const ofStore = this.#waiting.get(store) ?? new Set();
    this.#waiting.set(store, ofStore.add(waiter));
    this.#timer ??= setInterval(() => {
      void this.#look(this.#waiting.keys());
    }, lookIntervalMs).unref();
    await new Promise<void>((resolve) => (waiter.wake = resolve));
    ofStore.delete(waiter);
    if (ofStore.size === 0 && this.#waiting.get(store) === ofStore) this.#waiting.delete(store);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Call it after a write to the store. */
  notify(store: number): void {
    if (this.#waiting.has(store)) void this.#look([store]);
  }

  /** At most one look is in progress. It continues with the stores that were added meanwhile. */
  async #look(stores: Iterable<number>): Promise<void> {
    for (const store of stores) this.#due.add(store);
    if (this.#isLooking) return;
    this.#isLooking = true;
    while (this.#due.size > 0) {
      const some = [...this.#due].slice(0, maxStores);
      for (const store of some) this.#due.delete(store);
      const positions = await this.#log.positions(some).catch(() => new Map<number, number>());
      for (const [store, position] of positions) await this.#wake(store, position);
      await nextIteration(); // for other requests
    }
    this.#isLooking = false;
  }

  async #wake(store: number, last: number): Promise<void> {
    let woken = 0;
    for (const { position, wake } of this.#waiting.get(store) ?? []) {
      if (position >= last) continue;
      wake();
      if (++woken % maxWoken === 0) await nextIteration();
    }
  }
}
