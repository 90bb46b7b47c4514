/**
 * Follows the changes of a store with a cursor. A request waits in the service until there is a change.
 */
import type { Reply } from './call.ts';
import type { PlantStore } from './client.ts';
import type { DefaultFields, Fields, PlantWith } from './fields.ts';
import { isProblem, type PlantStoreError } from './problem.ts';
import { arrayOf, cursorOf, headerOf } from './reply.ts';
import type { Change } from './types.ts';
import { pause } from './waiting.ts';

/** How long the service holds a request if there is no change. */
const waitSeconds = 25;

/** How long a request without changes takes at least: a service that stops, or a proxy, can end it at once. */
const minWaitMs = 1_000;

/** How long after a new cursor the next one can be requested: shares can come and go all the time. */
const minResetMs = 1_000;

/** A change to a plant, and the plant as it is now. */
export type ChangeWith<F extends Fields> = Omit<Change, 'plant'> & {
  /** Absent if the plant is gone, or the user does not have access to it any more. */
  plant?: PlantWith<F>;
};

export interface ChangeBatch<F extends Fields = DefaultFields> {
  /** In the order in which they were made, each plant once. Can be empty. */
  changes: ChangeWith<F>[];
  /** The cursor behind these changes: save it after you have handled them, and pass it to `changes` to continue. */
  after: string;
  /** The position in the log that the cursor has reached, to compare with that of a response. */
  position: number;
}

export interface ChangesOptions<F extends Fields> {
  /** The cursor of an earlier batch. Without it, the changes from now on. */
  after?: string | undefined;
  /** Which fields a plant has; by default `name` and `tag`. */
  fields?: F | undefined;
  /** Maximum number of changes in a batch, at most 1,000. */
  pageSize?: number | undefined;
  /** Ends the loop, which throws its reason. */
  signal?: AbortSignal | undefined;
}

/** The first batch is that of `begin`. After it, `request` waits for changes. */
export async function* follow<F extends Fields>(
  begin: () => Promise<ChangeBatch<F>>,
  request: (after: string, wait: number) => Promise<ChangeBatch<F>>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ChangeBatch<F>, never, void> {
  let batch = await begin();
  for (;;) {
    yield batch;
    const { after } = batch;
    do {
      const startMs = performance.now();
      batch = await request(after, waitSeconds).catch((error: unknown) => {
        if (signal?.aborted === true || isProblem(error, 'cursor-ended')) throw error;
        return request(after, 0); // proxies end requests that wait: this one shows whether there is a problem
      });
      const tookMs = performance.now() - startMs;
      if (batch.after === after && tookMs < minWaitMs) await pause(minWaitMs - tookMs, signal);
    } while (batch.after === after);
  }
}

/** A batch that can come after missing changes. */
export type NewBatch<F extends Fields = DefaultFields> = ChangeBatch<F> & {
  /** The problem because of which the cursor is a new one. Changes before it can be missing. */
  reset: PlantStoreError | undefined;
};

/** The changes without end: if a cursor has ended, a new one begins. */
export async function* followAnew<F extends Fields>(
  store: PlantStore,
  { after, ...options }: ChangesOptions<F>,
): AsyncGenerator<NewBatch<F>, never, void> {
  let cursor = after;
  let reset: PlantStoreError | undefined;
  for (let resetAtMs = -Infinity; ;) {
    try {
      for await (const batch of store.changes({ ...options, after: cursor })) {
        yield { ...batch, reset };
        reset = undefined;
      }
    } catch (error) {
      if (!isProblem(error, 'cursor-ended')) throw error;
      [cursor, reset] = [undefined, error];
      const restMs = resetAtMs + minResetMs - performance.now();
      if (restMs > 0) await pause(restMs, options.signal);
      resetAtMs = performance.now();
    }
  }
}

export function batchOf<F extends Fields>(reply: Reply<ChangeWith<F>[]>): ChangeBatch<F> {
  const position = Number(headerOf(reply, 'Change-Position'));
  return { changes: arrayOf(reply), after: cursorOf(reply), position };
}
