/**
 * The changes that wait for a transaction, in the order of arrival.
 */
import type { QueuedChange } from './group.ts';

/** Maximum numbers of changes and of stores in a transaction, which locks the stores while it takes. */
const maxChanges = 512;
const maxStores = 64;

/** Which stores the next transaction can have. */
export interface StoreRules {
  canTake: (store: number) => boolean;
  /** Whether it must have no other store. */
  isAlone: (store: number) => boolean;
}

/** The changes of a store for the next transaction. */
interface Taken {
  queued: QueuedChange[];
  ids: Set<number>;
  isComplete: boolean;
}

export class WaitingChanges {
  #all: QueuedChange[] = [];

  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  add(queued: QueuedChange): void {
    this.#all.push(queued);
  }

  /** Adds changes that were taken before. */
  addAgain(queued: readonly QueuedChange[]): void {
    this.#all = [...queued, ...this.#all].toSorted((a, b) => a.number - b.number);
  }

  /** Removes changes that were queued before this time. */
  takeBefore(timeMs: number): QueuedChange[] {
    const end = this.#all.findIndex(({ sinceMs }) => sinceMs >= timeMs);
    return this.#all.splice(0, end === -1 ? this.#all.length : end);
  }

  /**
   * Removes the changes of the next transaction, by store, beginning with the oldest that can be taken. No two changes
   * of a store have the same id, because a group runs them by kind.
   */
  takeNext({ canTake, isAlone }: StoreRules): Map<number, QueuedChange[]> {
    const stores = new Map<number, Taken>();
    let changesLeft = maxChanges;
    let storesLeft = maxStores;
    const begin = (store: number): Taken | undefined => {
      if (storesLeft === 0 || !canTake(store)) return undefined;
      if (isAlone(store)) {
        if (stores.size > 0) return undefined;
        storesLeft = 1;
      }
      storesLeft--;
      const taken = { queued: [], ids: new Set<number>(), isComplete: false };
      stores.set(store, taken);
      return taken;
    };
    const take = (queued: QueuedChange): boolean => {
      if (changesLeft === 0) return false;
      const [, store, , id] = queued.change;
      const taken = stores.get(store) ?? begin(store);
      if (taken === undefined || taken.isComplete) return false;
      if (id !== undefined && taken.ids.has(id)) {
        taken.isComplete = true; // later changes of the store must not overtake this one
        return false;
      }
      if (id !== undefined) taken.ids.add(id);
      taken.queued.push(queued);
      changesLeft--;
      return true;
    };
    this.#all = this.#all.filter((queued) => !take(queued));
    return new Map([...stores].map(([store, { queued }]) => [store, queued]));
  }
}
