/**
 * Deletes with undo. The rows disappear at once, and the requests are sent some seconds later. A plant that was
 * deleted and recreated would belong to the user who undid it.
 */
import { PlantStoreError, type PlantStore } from '../client/client.ts';
import { isProblem } from '../client/problem.ts';
import type { Connection } from './connection.ts';
import { element } from './dom.ts';
import { plantCount } from './format.ts';
import type { Plant } from './plant-pages.ts';
import { maxSelected } from './selection.ts';
import { toast } from './toast.ts';

const undoMs = 8_000;
const concurrency = 8;

export interface DeletionEvents {
  onHide: (plants: Plant[]) => void;
  onRestore: (plants: Plant[]) => void;
}

export class Deletions {
  /** The ids of plants that are to be deleted, or are being deleted. */
  readonly hidden = new Set<number>();
  readonly #connection: Connection;
  readonly #events: DeletionEvents;
  #pending: Plant[] = [];
  #message: { close: () => void } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Aborts when another store opens. */
  #end = new AbortController();

  constructor(connection: Connection, events: DeletionEvents) {
    this.#connection = connection;
    this.#events = events;
    addEventListener('pagehide', () => this.#sendAtEnd());
    addEventListener('pageshow', ({ persisted }) => {
      // The page comes back as it was left. Its deletions were sent, but nobody knows how they ended.
      if (persisted && this.hidden.size > 0) location.reload();
    });
    addEventListener('keydown', (event) => {
      const isUndo = event.key === 'z' && (event.ctrlKey || event.metaKey) && !event.shiftKey;
      if (!isUndo || this.#pending.length === 0 || isTextField(event.target)) return;
      event.preventDefault();
      this.undo();
    });
  }

  /** Hides the plants, and deletes them later, together with those that are already pending. */
  add(plants: Plant[]): void {
    if (this.#pending.length + plants.length > maxSelected) void this.send();
    this.#pending.push(...plants);
    for (const { id } of plants) this.hidden.add(id);
    this.#events.onHide(plants);
    this.#show();
  }

  undo(): void {
    const plants = this.#take();
    this.#restore(plants);
    toast(plants.length === 1 ? 'The plant is back.' : `${plantCount(plants.length)} are back.`);
  }

  /** Drops pending deletions, and stops those that are being sent, because another store opens. */
  reset(): void {
    this.#end.abort();
    this.#end = new AbortController();
    this.#take();
    this.hidden.clear();
  }

  /** Deletes the pending plants now. */
  async send(): Promise<void> {
    const plants = this.#take();
    if (plants.length === 0) return;
    const { signal } = this.#end;
    const failed: Plant[] = [];
    let reason = '';
    const queue = plants.values();
    const work = async () => {
      for (const plant of queue) {
        try {
          const { id } = plant;
          if (await this.#connection.run((store) => deletePlant(store, id, signal), { signal })) {
            this.hidden.delete(id);
            continue;
          }
          reason = 'You can see the plants of some users, but not delete them.';
        } catch (error) {
          if (signal.aborted) return;
          if (!(error instanceof PlantStoreError)) throw error;
          reason = error.detail;
        }
        failed.push(plant);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, work));
    if (signal.aborted) return;
    if (failed.length === 0) {
      toast(`Deleted ${plants.length === 1 ? `“${plants[0]?.name}”` : plantCount(plants.length)}.`);
      return;
    }
    this.#restore(failed);
    toast(`${plantCount(failed.length)} could not be deleted. ${reason}`);
  }

  #take(): Plant[] {
    clearTimeout(this.#timer);
    this.#message?.close();
    return this.#pending.splice(0);
  }

  #restore(plants: Plant[]): void {
    for (const { id } of plants) this.hidden.delete(id);
    this.#events.onRestore(plants);
  }

  #show(): void {
    this.#message?.close();
    const [first] = this.#pending;
    const what = this.#pending.length === 1 ? `“${first?.name}”` : plantCount(this.#pending.length);
    const undo = element('button', { type: 'button' }, 'Undo');
    undo.addEventListener('click', () => this.undo());
    this.#message = toast(`Deleting ${what} in ${undoMs / 1_000} seconds.`, undo);
    // Gives a person who is about to press the button time to do so.
    undo.addEventListener('focus', () => clearTimeout(this.#timer));
    undo.addEventListener('blur', () => this.#schedule());
    this.#schedule();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.send(), undoMs);
  }

  /** Also repeats the requests in flight, because the browser aborts them. */
  #sendAtEnd(): void {
    this.#take();
    for (const id of this.hidden) {
      // The page is gone, so nobody can see an error.
      this.#connection.lasting.delete(id).catch(() => {});
    }
  }
}

/** False if the user can only see the plant. One that somebody else has deleted meanwhile is deleted as well. */
async function deletePlant(store: PlantStore, id: number, signal: AbortSignal): Promise<boolean> {
  try {
    await store.delete(id, { signal });
    return true;
  } catch (error) {
    if (!isProblem(error, 'plant-not-found')) throw error;
  }
  try {
    await store.get(id, { signal });
    return false;
  } catch (error) {
    if (!isProblem(error, 'plant-not-found')) throw error;
    return true;
  }
}

/** Where the browser itself undoes typing. */
function isTextField(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches('input, textarea');
}
