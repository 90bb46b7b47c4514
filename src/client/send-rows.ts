/**
 * Adds the rows of a file to a store, many at a time, and never a row twice: each has an idempotency key (decision 30).
 */
import { PlantStoreError, type NewPlant, type PlantStore } from './client.ts';
import { inParallel } from './in-parallel.ts';
import type { ImportRow } from './read-rows.ts';

export interface ImportOptions {
  /** A client whose calls wait for the service as long as the import should. */
  store: PlantStore;
  rows: readonly ImportRow[];
  /** Returns the idempotency key of a row. It is called for each row in the order of the file. */
  keyOf: (plant: NewPlant, row: number) => string;
  /** Number of requests in flight. */
  concurrency: number;
  /** Stops the import, which then throws the reason of the signal. */
  signal: AbortSignal;
}

/** What happened to a row. `reason` describes a refusal, and its fix. */
export interface ImportOutcome {
  /** The number of the row, from 1. */
  row: number;
  /** The line on which it begins. A row of a JSON array has none. */
  line?: number | undefined;
  status: 'added' | 'already added' | 'refused';
  id?: number | undefined;
  reason?: string | undefined;
}

/** A row to add. */
interface Task extends Pick<ImportOutcome, 'row' | 'line'> {
  plant: NewPlant;
  key: string;
}

/**
 * Yields an outcome for each row, in the order in which they happen. Throws a PlantStoreError if a failure concerns
 * more than one row. To continue after that, import the rows again with the same keys.
 */
export async function* importPlants({
  store,
  rows,
  keyOf,
  concurrency,
  signal,
}: ImportOptions): AsyncGenerator<ImportOutcome, void> {
  const tasks: Task[] = [];
  for (const [at, source] of rows.entries()) {
    const place = { row: at + 1, line: source.line };
    if ('fault' in source) yield { ...place, status: 'refused', reason: source.fault };
    else tasks.push({ ...place, plant: source.plant, key: keyOf(source.plant, place.row) });
  }
  const add = async ({ plant, key, ...place }: Task): Promise<ImportOutcome> => {
    signal.throwIfAborted();
    try {
      const { id, isReplay } = await store.create(plant, { idempotencyKey: key, signal });
      return { ...place, status: isReplay ? 'already added' : 'added', id };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { ...place, status: 'refused', reason: reasonOf(error) };
    }
  };
  // Rows with ids come first, because the service assigns larger ids to the others.
  for (const hasId of [true, false]) {
    const some = tasks.filter(({ plant }) => (plant.id !== undefined) === hasId);
    yield* inParallel(some, concurrency, add);
  }
}

const refusals: readonly string[] = ['invalid-request', 'body-too-large', 'id-taken'];

/** Whether the service refuses this row, and not the whole import. */
function isRefusal(error: unknown): error is PlantStoreError {
  return error instanceof PlantStoreError && refusals.includes(error.kind);
}

function reasonOf({ detail, errors }: PlantStoreError): string {
  return errors.length === 0 ? detail : errors.map((fault) => fault.detail).join(' ');
}

/** Where a row is in the file: "line 4", or "row 3" if it has no line. */
export function placeOf({ row, line }: Pick<ImportOutcome, 'row' | 'line'>): string {
  return line === undefined ? `row ${row}` : `line ${line}`;
}

/** "Added 3 plants; 1 row was refused." */
export function summaryOf(
  { added, 'already added': before, refused }: Readonly<Record<ImportOutcome['status'], number>>,
  format: (count: number) => string = String,
): string {
  const parts = [`Added ${format(added)} ${added === 1 ? 'plant' : 'plants'}`];
  if (before > 0) parts.push(`${format(before)} ${before === 1 ? 'was' : 'were'} already added`);
  if (refused > 0)
    parts.push(`${format(refused)} ${refused === 1 ? 'row was' : 'rows were'} refused`);
  return `${parts.join('; ')}.`;
}
