/**
 * A copy of the list that follows the store. Its cursor is older than its list, so every change is in one of them.
 */
import type { PlantStore } from './client.ts';
import { defaultFields, select, type Fields, type PlantWith } from './fields.ts';
import { followAnew, type ChangesOptions, type ChangeWith } from './follow.ts';
import { isProblem, type PlantStoreError } from './problem.ts';
import type { PlantField } from './types.ts';
import { unlessAborted } from './waiting.ts';

export interface MirrorOptions<F extends Fields> {
  /** Which fields a plant has; by default `name` and `tag`. */
  fields?: F | undefined;
  /** Ends the mirror. */
  signal?: AbortSignal | undefined;
  /**
   * Called after the mirror has these changes; without them after it was listed anew, which can have changed everything. If it
   * returns a promise, the mirror changes again only after it.
   */
  onChange?: ((changes: ChangeWith<F>[] | undefined) => void | Promise<void>) | undefined;
}

export interface Mirror<F extends Fields> {
  /** The plants by id, in no order. Read this property each time, because it can become another Map. */
  readonly plants: ReadonlyMap<number, PlantWith<F>>;
  /** Resolves once the signal aborts. Rejects if the mirror cannot follow any more: its plants then stay as they are. */
  readonly ended: Promise<void>;
  /**
   * Resolves once the mirror has the change with this position; without one, all changes until now. Rejects if the mirror ends
   * first, or the database is restored, because the change can then be lost.
   */
  until(position?: number, options?: { signal?: AbortSignal | undefined }): Promise<void>;
}

/** `patient` is the same client as `store`, with retries without end. Resolves once the mirror has all plants. */
export async function startMirror<F extends Fields>(
  store: PlantStore,
  patient: PlantStore,
  { fields, signal, onChange }: MirrorOptions<F>,
): Promise<Mirror<F>> {
  const next = async (options: ChangesOptions<Fields>) =>
    (await store.changes(options).next()).value;
  let { after, position } = await next({ signal });
  let plants = await listAll(store, fields, signal);
  let moved = createEvent();
  /** The last one that the mirror has found. */
  let restore: PlantStoreError | undefined;

  /** Why the cursor has ended: a restore after it ended for another reason still makes receipts worthless. */
  async function latestEnd(reset: PlantStoreError): Promise<PlantStoreError> {
    const last = patient.changes({ after, pageSize: 1, signal }).next();
    return last.then(
      () => reset,
      (error: unknown) => {
        if (isProblem(error, 'cursor-ended')) return error;
        throw error;
      },
    );
  }

  async function run(): Promise<void> {
    const batches = followAnew(patient, { after, fields, signal });
    for await (const { changes, reset, ...batch } of batches) {
      if (reset !== undefined) plants = await listAll(patient, fields, signal);
      const end = reset && (await latestEnd(reset));
      for (const { id, plant } of changes) {
        if (plant === undefined) plants.delete(id);
        else plants.set(id, plant);
      }
      ({ after, position } = batch);
      if (end?.reason === 'restored') restore = end;
      const { resolve } = moved;
      moved = createEvent();
      resolve();
      if (reset !== undefined) await onChange?.(undefined);
      else if (changes.length > 0) await onChange?.(changes);
    }
  }

  const ended = run().catch((error: unknown) => {
    moved.reject(error);
    if (signal?.aborted !== true) throw error;
  });
  ended.catch(() => {}); // nobody has to wait for it

  return {
    get plants() {
      return plants;
    },
    ended,
    async until(wanted, { signal: end } = {}) {
      if (Number.isNaN(wanted)) throw new RangeError('A position is a number.');
      const known = restore;
      const target = wanted ?? (await next({ signal: end })).position;
      for (;;) {
        const [cursor, { promise }] = [after, moved];
        // After a restore, positions mean other changes, so the cursor has to be valid. If it is not, a new one comes.
        const ahead = await next({ after: cursor, pageSize: 1, signal: end }).catch((error) => {
          if (isProblem(error, 'cursor-ended')) return undefined;
          throw error;
        });
        // No batch comes for changes that the user cannot see.
        if (ahead?.changes.length === 0 && cursor === after) {
          position = Math.max(position, ahead.position);
        }
        if (restore !== undefined && restore !== known) throw restore;
        if (ahead !== undefined && position >= target) return;
        await unlessAborted(promise, end);
      }
    },
  };
}

async function listAll<F extends Fields>(
  store: PlantStore,
  fields: F | undefined,
  signal: AbortSignal | undefined,
): Promise<Map<number, PlantWith<F>>> {
  const plants = new Map<number, PlantWith<F>>();
  const wanted: Fields = [...new Set<PlantField>([...(fields ?? defaultFields), 'id'])];
  for await (const { id, ...others } of store.list({ fields: wanted, signal })) {
    if (id !== undefined) plants.set(id, select<F>({ id, ...others }, fields)); // it always has one
  }
  return plants;
}

/** A promise that others settle. It is no error if nobody waits for it. */
function createEvent() {
  let [resolve, reject] = [() => {}, (_reason: unknown) => {}];
  const promise = new Promise<void>((...settle) => ([resolve, reject] = settle));
  promise.catch(() => {});
  return { promise, resolve, reject };
}
