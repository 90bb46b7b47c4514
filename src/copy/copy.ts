/**
 * Copies all rows between two storages, in batches, and compares the digests of both.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '../refusal.ts';
import { keyPartOf, tables, type Archive, type Row, type Table, type Target } from './archive.ts';

/** Number of rows that are read into memory and then written together. */
const batchRows = 2_000;

/** Shows the progress of `work`: its title, and how many rows of the total are done. */
type WithProgress = <T>(
  title: string,
  unit: string,
  work: (onProgress: (done: number, total: number) => void) => Promise<T>,
) => Promise<T>;

/** Copies all rows to an empty storage, and compares it with what was read. Returns the number of rows per table. */
export async function copyAndCompare(
  source: Archive,
  target: Target,
  withProgress: WithProgress,
): Promise<{ rows: Record<string, number>; digest: string }> {
  const version = await source.version();
  const rows: Record<string, number> = {};
  // One table after the other, because each can take long and use all machines.
  for (const table of tables) rows[table] = await source.count(table);
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0);

  const digest = await withProgress('Copying', 'rows', (onProgress) => {
    let done = 0;
    return digestOf(source, async (table, batch) => {
      await target.add(table, batch);
      onProgress((done += batch.length), total);
    });
  });
  const copied = await withProgress('Comparing', 'rows', (onProgress) => {
    let done = 0;
    return digestOf(target, async (_, batch) => onProgress((done += batch.length), total));
  });
  if (digest !== copied || version !== (await source.version())) {
    throw new Refusal(
      'The copy differs from the original: one of them changed during the copy. ' +
        'Stop the service, then copy again.',
    );
  }
  return { rows, digest };
}

/** SHA-256 of all rows of all tables in order, in hexadecimal. Calls `handle` with each batch of rows. */
async function digestOf(
  storage: Pick<Target, 'read'>,
  handle: (table: Table, rows: readonly Row[]) => Promise<void>,
): Promise<string> {
  const digest = createHash('sha256');
  for (const table of tables) {
    digest.update(`${table}\n`);
    for (let after: Row | undefined; ;) {
      const rows = await storage.read(table, after, batchRows);
      const last = rows.at(-1);
      if (last === undefined) break;
      for (const row of rows) digest.update(`${JSON.stringify(row.map(comparable))}\n`);
      await handle(table, rows);
      after = keyPartOf(table, last);
    }
  }
  return digest.digest('hex');
}

/** Bytes become text, because each engine returns them as another class. */
function comparable(value: Row[number]): string | number | null {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}
