/**
 * Copies all rows between two storages, in batches, and compares the digests of both.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '../refusal.ts';
import { keyPartOf, tables, type Archive, type Row, type Table } from './archive.ts';

/** Number of rows that are read into memory and then written together. */
const batchRows = 2_000;

/** Shows the progress of `work`: its title, and how many rows of the total are done. */
type WithProgress = <T>(
  title: string,
  unit: string,
  work: (onProgress: (done: number, total: number) => void) => Promise<T>,
) => Promise<T>;

/** Copies the rows that are missing, then compares both databases. Returns the number of rows per table. */
export async function copyAndCompare(
  source: Archive,
  target: Archive,
  withProgress: WithProgress,
): Promise<{ rows: Record<string, number>; digest: string }> {
  const version = await source.version();
  const rows = await countsOf(source);
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0);
  await withProgress('Copying', 'rows', async (onProgress) => {
    let done = 0;
    const count = (copied: number) => onProgress((done += copied), total);
    for (const table of tables) await copyTable(source, target, table, count);
  });
  const digests = await withProgress('Comparing', 'rows', async (onProgress) => {
    let done = 0;
    const count = (read: number) => onProgress((done += read), 2 * total);
    return [await digestOf(source, count), await digestOf(target, count)] as const;
  });
  const [digest] = digests;
  if (digest !== digests[1] || version !== (await source.version())) {
    throw new Refusal(
      'The copy differs from the original: one of them changed during the copy. ' +
        'Stop the service, then copy to an empty database.',
    );
  }
  await target.finishCopy();
  return { rows, digest };
}

/** Copies the rows after the last one in the target. */
async function copyTable(
  source: Archive,
  target: Archive,
  table: Table,
  onProgress: (rows: number) => void,
): Promise<void> {
  const after = await target.lastKey(table);
  onProgress(after === undefined ? 0 : await target.count(table));
  for await (const rows of batchesOf(source, table, after)) {
    await target.add(table, rows);
    onProgress(rows.length);
  }
}

/** SHA-256 of all rows of all tables in order, in hexadecimal. */
async function digestOf(archive: Archive, onProgress: (rows: number) => void): Promise<string> {
  const digest = createHash('sha256');
  for (const table of tables) {
    digest.update(`${table}\n`);
    for await (const rows of batchesOf(archive, table)) {
      for (const row of rows) digest.update(`${JSON.stringify(row.map(comparable))}\n`);
      onProgress(rows.length);
    }
  }
  return digest.digest('hex');
}

/** All rows of the table, or those after a key. */
async function* batchesOf(archive: Archive, table: Table, after?: Row): AsyncGenerator<Row[]> {
  for (let key = after; ;) {
    const rows = await archive.read(table, key, batchRows);
    if (rows.length === 0) return;
    yield rows;
    key = keyPartOf(table, rows.at(-1) ?? []);
  }
}

/** Bytes become text, because each engine returns them as another class. */
function comparable(value: Row[number]): string | number | null {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}

/** One table after the other, because each can take long and use all machines. */
async function countsOf(archive: Archive): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of tables) counts[table] = await archive.count(table);
  return counts;
}
