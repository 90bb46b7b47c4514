/**
 * Wakes those who wait for changes of a store: at once after a write of this process, and soon after one of another. However
 * many wait, a process reads one number of each store.
 */
import type { ChangeLog } from './change-log.ts';

/** How often to look at a store for which somebody waits. With the time of the look, less than 0.5 s. */
const lookIntervalMs = 400;

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
  readonly #log: Pick<ChangeLog, 'position'>;
  /** By store. No set is empty. */
  readonly #waiting = new Map<number, Set<Waiter>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Pick<ChangeLog, 'position'>) {
    this.#log = log;
  }

  /** Resolves if the store can have a change after the position of the waiter, or if it ends. */
  async wait(waiter: Waiter): Promise<void> {
    if (waiter.isOver) return;
    const { store } = waiter;
    const ofStore = this.#waiting.get(store) ?? new Set();
    this.#waiting.set(store, ofStore.add(waiter));
    this.#timer ??= setInterval(() => this.#lookAtAll(), lookIntervalMs).unref();
    await new Promise<void>((resolve) => (waiter.wake = resolve));
    ofStore.delete(waiter);
    if (ofStore.size === 0 && this.#waiting.get(store) === ofStore) this.#waiting.delete(store);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Call it after a write to the store. */
  notify(store: number): void {
    if (this.#waiting.has(store)) void this.#look(store);
  }

  #lookAtAll(): void {
    for (const store of this.#waiting.keys()) void this.#look(store);
  }

  async #look(store: number): Promise<void> {
    const last = await this.#log.position(store).catch(() => 0); // the next look can succeed
    for (const { position, wake } of this.#waiting.get(store) ?? []) if (position < last) wake();
  }
}
