/**
 * Adds the rows of a file to a store, many at a time, and never a row twice. A row without an id gets one here,
 * because only a request with an id can be repeated safely. The journal has the id before the request is sent.
 * Decision 30 explains why.
 */
import type { PlantStore, PlantStoreError } from './client.ts';
import { Importer, type Task } from './importer.ts';
import type { ImportRow } from './import-file.ts';

/** What happened to a row. `reason` describes a refusal, and its fix. */
export interface ImportOutcome {
  /** The number of the row, from 1. */
  row: number;
  /** The line on which it begins. A file of JSON can have many rows on a line. */
  line: number;
  status: 'added' | 'already added' | 'refused';
  id?: number | undefined;
  reason?: string | undefined;
}

/**
 * What was done for a row:
 * - `id`: the request with this id may have been sent; `added` is true after it succeeded
 * - `after`: a request without an id may have been sent, when this was the largest visible id
 */
export type JournalEntry = { id: number; added: boolean } | { after: number };

/** Stores what was done, so that an interrupted import can continue. It belongs to one user of one store. */
export interface ImportJournal {
  /** All entries by their key. A key has the content of a row. */
  readonly entries: ReadonlyMap<string, JournalEntry>;
  /** Adds or replaces an entry. Resolves when it would survive the end of the process. */
  write(key: string, entry: JournalEntry): Promise<void>;
}

/** A journal that ends with the process. */
export function memoryJournal(): ImportJournal {
  const entries = new Map<string, JournalEntry>();
  return { entries, write: async (key, entry) => void entries.set(key, entry) };
}

export interface ImportOptions {
  store: PlantStore;
  rows: readonly ImportRow[];
  journal: ImportJournal;
  /** Number of requests in flight. Default: 32. */
  concurrency?: number | undefined;
  /** Stops the import, which then throws the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** Called before each wait for a service that is not available. */
  onWait?: ((problem: PlantStoreError) => void) | undefined;
}

/**
 * Yields an outcome for each row, in the order in which they happen. Throws a PlantStoreError if the service refuses
 * the token, or does not respond for 10 minutes. To continue after that, import the same rows again.
 */
export async function* importPlants(options: ImportOptions): AsyncGenerator<ImportOutcome, void> {
  for (const [at, row] of options.rows.entries()) {
    if (!('fault' in row)) continue;
    yield { row: at + 1, line: row.line, status: 'refused', reason: row.fault };
  }
  const tasks = tasksOf(options.rows);
  const importer = new Importer(options);
  // First, because the reserved ids must be above them.
  yield* importer.addWithOwnIds(tasks.filter(({ plant }) => plant.id !== undefined));
  yield* importer.addWithoutIds(tasks.filter(({ plant }) => plant.id === undefined));
}

/** Equal rows have different keys: the second one is another plant. */
function tasksOf(rows: readonly ImportRow[]): Task[] {
  const counts = new Map<string, number>();
  return rows.flatMap((row, at) => {
    if ('fault' in row) return [];
    const { line, plant } = row;
    const { name, tag = '', id } = plant;
    const content = JSON.stringify([name, tag, id]);
    const count = (counts.get(content) ?? 0) + 1;
    counts.set(content, count);
    return [{ row: at + 1, line, plant, key: `${content} ${count}` }];
  });
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
