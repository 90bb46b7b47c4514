/**
 * Adds the rows of a file to a store, many at a time, and never a row twice: each has an idempotency key (decision 30).
 */
import {
  PlantStoreError,
  type CallOptions,
  type NewPlant,
  type PlantPatch,
  type PlantStore,
  type ResponseInfo,
} from './client.ts';
import { inParallel } from './in-parallel.ts';
import { isUpdated } from './lost-response.ts';
import { printable } from './printable.ts';
import { isProblem } from './problem.ts';
import { importedFields, type ImportRow } from './read-table.ts';
import { textFields } from './types.ts';

export interface ImportOptions {
  /** A client whose calls wait for the service as long as the import should. */
  store: PlantStore;
  rows: readonly ImportRow[];
  /** Returns the idempotency key of a row. It is called for each row in the order of the file. */
  keyOf: (plant: NewPlant, row: number) => string;
  /** The ids of the plants that earlier imports have added, by the keys of their rows. */
  added?: ReadonlyMap<unknown, number> | undefined;
  /** Whether a row with the id of a plant that is there changes that plant. */
  update: boolean;
  /** Number of requests in flight. */
  concurrency: number;
  /** Stops the import, which then yields what its requests in flight have done, and throws the reason of the signal. */
  signal: AbortSignal;
}

/** What happened to a row. */
export interface ImportOutcome extends Done {
  /** The number of the row, from 1. */
  row: number;
  /** The line on which it begins. A row of a JSON array has none. */
  line?: number | undefined;
  status: 'added' | 'already added' | 'updated' | 'unchanged' | 'refused';
  /** Why the row is refused, and how to fix it. */
  reason?: string | undefined;
  /** The kind of the problem, if the service refuses the row. */
  kind?: string | undefined;
}

/** What an import has done, so that it can be undone. */
export interface Done {
  /** The idempotency key of the row. */
  key?: string | undefined;
  id?: number | undefined;
  /** The entity tag that the plant got. Without it, nobody can know whether the plant has changed since. */
  etag?: string | undefined;
  /** What the texts of the row were before, if it has updated a plant. */
  before?: PlantPatch | undefined;
}

/** How long an import that is stopped waits for its requests in flight: nobody knows otherwise what they have done. */
const stopMs = 2_000;

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
  added,
  update,
  concurrency,
  signal,
}: ImportOptions): AsyncGenerator<ImportOutcome, void> {
  const tasks: Task[] = [];
  for (const [at, source] of rows.entries()) {
    const place = { row: at + 1, line: source.line };
    if ('fault' in source) yield { ...place, status: 'refused', reason: source.fault };
    else tasks.push({ ...place, plant: source.plant, key: keyOf(source.plant, place.row) });
  }
  const calls = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => (timer = setTimeout(() => calls.abort(signal.reason), stopMs));
  signal.addEventListener('abort', stop);
  const send = async ({ plant, key, ...place }: Task): Promise<ImportOutcome> => {
    signal.throwIfAborted();
    let etag: string | undefined;
    const onResponse = ({ headers }: ResponseInfo) => (etag = headers.get('etag') ?? undefined);
    const options = { signal: calls.signal, onResponse };
    try {
      const changed = update ? await updatePlant(store, plant, options) : undefined;
      if (changed !== undefined) return { ...place, ...changed, id: plant.id, key, etag };
      const earlier = added?.get(key);
      if (earlier !== undefined && (await isThere(store, earlier, options)))
        return { ...place, status: 'already added', id: earlier };
      const { id, isReplay } = await store.create(plant, { ...options, idempotencyKey: key });
      return { ...place, status: isReplay ? 'already added' : 'added', id, key, etag };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { ...place, status: 'refused', reason: reasonOf(error, plant), kind: error.kind };
    }
  };
  try {
    // Rows with ids come first, because the service assigns larger ids to the others.
    for (const hasId of [true, false]) {
      const some = tasks.filter(({ plant }) => (plant.id !== undefined) === hasId);
      yield* inParallel(some, concurrency, send);
    }
  } finally {
    signal.removeEventListener('abort', stop);
    clearTimeout(timer);
  }
}

/** A plant of an earlier import can be gone, as after a restore of the database. */
async function isThere(store: PlantStore, id: number, options: CallOptions): Promise<boolean> {
  try {
    await store.get(id, options);
    return true;
  } catch (error) {
    if (!isProblem(error, 'plant-not-found')) throw error;
    return false;
  }
}

/** Changes the plant that has the id of the row. Undefined if there is none. */
async function updatePlant(
  store: PlantStore,
  { id, ...patch }: NewPlant,
  options: CallOptions,
): Promise<Pick<ImportOutcome, 'status' | 'before'> | undefined> {
  if (id === undefined) return undefined;
  try {
    const { plant, etag } = await store.getWithETag(id, { ...options, fields: textFields });
    if (isUpdated(plant, patch)) return { status: 'unchanged' };
    await store.update(id, patch, { ...options, ifMatch: etag });
    const before: PlantPatch = {};
    for (const field of textFields) if (patch[field] !== undefined) before[field] = plant[field];
    return { status: 'updated', before };
  } catch (error) {
    if (!isProblem(error, 'plant-not-found')) throw error;
    return undefined;
  }
}

/**
 * Undoes what an import has done, and yields each plant with whether it did. A plant that has changed since then stays as
 * it is. Several rows of one plant are undone as one, so that it ends as it was before the first.
 */
export async function* undoImport(
  store: PlantStore,
  all: readonly Done[],
  concurrency: number,
): AsyncGenerator<{ id: number; isUndone: boolean }, void> {
  const plants = new Map<number, Done>();
  for (const { id = 0, etag, before } of all) {
    const first = plants.get(id);
    // A plant that the import has added is deleted, whatever a later row made of it.
    const original = first === undefined ? before : first.before && { ...before, ...first.before };
    plants.set(id, { etag, before: original });
  }
  yield* inParallel(plants, concurrency, async ([id, { etag: ifMatch, before }]) => {
    try {
      if (ifMatch === undefined) return { id, isUndone: false };
      if (before) await store.update(id, before, { ifMatch });
      else await store.delete(id, { ifMatch });
      return { id, isUndone: true };
    } catch (error) {
      if (isProblem(error, 'plant-not-found')) return { id, isUndone: before === undefined };
      if (isRefusal(error)) return { id, isUndone: false };
      throw error;
    }
  });
}

const refusals: readonly string[] = [
  'invalid-request',
  'body-too-large',
  'id-taken',
  'plant-read-only',
  'precondition-failed',
];

/** Whether the service refuses this row, and not the whole import. */
function isRefusal(error: unknown): error is PlantStoreError {
  return error instanceof PlantStoreError && refusals.includes(error.kind);
}

/** The reason of the service, in plain words where these are more precise. */
function reasonOf({ kind, detail, errors }: PlantStoreError, plant: NewPlant): string {
  if (kind === 'precondition-failed')
    return 'The plant was changed meanwhile, perhaps by another row with this id.';
  if (errors.length === 0) return detail;
  const reasons = errors.map(({ pointer, detail: reason }) => {
    const field = importedFields.find((each) => pointer === `/${each}`);
    return (field && faultIn(field, plant[field])) ?? reason.replaceAll(' (code points)', '');
  });
  return reasons.join(' ');
}

const characters: Record<string, string> = {
  '\t': 'a tab',
  '\n': 'a line break',
  '\r': 'a line break',
};

/** What is wrong with a text: that it is empty, or the first character that no text can have. */
function faultIn(field: string, value: unknown): string | undefined {
  if (field === 'name' && typeof value === 'string' && value.trim() === '') {
    return 'The name is empty.';
  }
  const found = /[\p{Cc}\p{Cs}]/u.exec(typeof value === 'string' ? value : '');
  if (found === null) return undefined;
  const character = characters[found[0]] ?? `an invisible character (${printable(found[0])})`;
  const start = found.input.slice(0, found.index).slice(-20);
  const place = start === '' ? 'at its beginning' : `behind "${start}"`;
  return `The ${field} has ${character} ${place}. Remove it.`;
}

/** Where a row is in the file: "line 4", or "row 3" if it has no line. */
export function placeOf({ row, line }: Pick<ImportOutcome, 'row' | 'line'>): string {
  return line === undefined ? `row ${row}` : `line ${line}`;
}

/** "Added 3 plants; updated 2; 1 row was refused." */
export function summaryOf(
  counts: Readonly<Record<ImportOutcome['status'], number>>,
  format: (count: number) => string = String,
): string {
  const { added, 'already added': before, updated, unchanged, refused } = counts;
  const were = (count: number) => `${format(count)} ${count === 1 ? 'was' : 'were'}`;
  const parts = [`Added ${format(added)} ${added === 1 ? 'plant' : 'plants'}`];
  if (updated > 0) parts.push(`updated ${format(updated)}`);
  if (unchanged > 0) parts.push(`${were(unchanged)} unchanged`);
  if (before > 0) parts.push(`${were(before)} already added`);
  if (refused > 0)
    parts.push(`${format(refused)} ${refused === 1 ? 'row was' : 'rows were'} refused`);
  return `${parts.join('; ')}.`;
}

export const noCounts = { added: 0, 'already added': 0, updated: 0, unchanged: 0, refused: 0 };

/** What a row says, for people who look for it in their file. */
export function contentOf(row: ImportRow | undefined): string {
  if (row === undefined) return '';
  const { name = '', ...others }: object & { name?: unknown } =
    'fault' in row ? row.content : row.plant;
  return [name, ...Object.values(others)]
    .filter((value) => value !== '')
    .map(shownTextOf)
    .join(', ');
}

/** The text with signs for tabs and line breaks, for people. */
export function shownTextOf(value: unknown): string {
  return textOf(value)
    .replaceAll('\t', ' ⇥ ')
    .replaceAll(/\r\n|\r|\n/g, ' ↵ ');
}

/** JSON can have anything in place of a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}
