/**
 * Deletes plants after the user has agreed. A row disappears when the service has deleted its plant.
 */
import { PlantStoreError, type PlantStore } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { confirm } from '../shared/confirm.ts';
import type { Connection } from '../session/connection.ts';
import { plantCount } from '../shared/format.ts';
import type { Plant } from './plant-list.ts';
import { toast } from '../shared/toast.ts';

const concurrency = 8;

export interface DeletionEvents {
  /** The user has agreed. */
  onBegin: () => void;
  onGone: (plant: Plant) => void;
}

export class Deletions {
  readonly #connection: Connection;
  readonly #events: DeletionEvents;
  /** The ids of plants that are being deleted. Their rows can still be chosen. */
  readonly #inProgress = new Set<number>();
  /** Aborts when another store opens. */
  #end = new AbortController();

  constructor(connection: Connection, events: DeletionEvents) {
    this.#connection = connection;
    this.#events = events;
  }

  /** Stops the deletions, because another store opens. */
  reset(): void {
    this.#end.abort();
    this.#end = new AbortController();
    this.#inProgress.clear();
  }

  /** Asks the user, and then deletes the plants. */
  async delete(chosen: readonly Plant[]): Promise<void> {
    const { signal } = this.#end;
    const plants = chosen.filter(({ id }) => !this.#inProgress.has(id));
    const [first] = plants;
    if (first === undefined) return;
    const what = plants.length === 1 ? `“${first.name}”` : plantCount(plants.length);
    const question = { title: `Delete ${what}?`, text: 'You cannot undo this.', action: 'Delete' };
    if (!(await confirm(question, signal))) return;
    for (const { id } of plants) this.#inProgress.add(id);
    this.#events.onBegin();
    const message = toast(`Deleting ${what} …`);
    try {
      const { failed, reason } = await this.#deleteAll(plants, signal);
      if (failed === 0) toast(`Deleted ${what}.`);
      else toast(`${plantCount(failed)} could not be deleted. ${reason}`);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      message.close();
      if (!signal.aborted) for (const { id } of plants) this.#inProgress.delete(id);
    }
  }

  async #deleteAll(
    plants: readonly Plant[],
    signal: AbortSignal,
  ): Promise<{ failed: number; reason: string }> {
    const outcome = { failed: 0, reason: '' };
    const queue = plants.values();
    const work = async () => {
      for (const plant of queue) {
        try {
          await this.#connection.run((store) => deletePlant(store, plant.id, signal), { signal });
          this.#events.onGone(plant);
        } catch (error) {
          if (signal.aborted || !(error instanceof PlantStoreError)) throw error;
          outcome.failed++;
          outcome.reason =
            error.kind === 'plant-not-found'
              ? 'You can see the plants of some users, but not delete them.'
              : error.detail;
        }
      }
    };
    await Promise.all(Array.from({ length: concurrency }, work));
    return outcome;
  }
}

/** Throws `plant-not-found` if the user can only see the plant. One that somebody else has deleted is deleted. */
async function deletePlant(store: PlantStore, id: number, signal: AbortSignal): Promise<void> {
  try {
    await store.delete(id, { signal });
  } catch (error) {
    if (!isProblem(error, 'plant-not-found')) throw error;
    const canSee = await store.get(id, { signal }).then(
      () => true,
      (reason: unknown) => {
        if (!isProblem(reason, 'plant-not-found')) throw reason;
        return false;
      },
    );
    if (canSee) throw error;
  }
}
