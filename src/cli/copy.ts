/**
 * Copies all that one database holds to another, whatever engines they are on.
 */
import { createHash } from 'node:crypto';
import { keyColumns, tables, type Archive, type Row, type Table } from '../archive.ts';
import { Refusal } from '../refusal.ts';
import { openArchive, shownDatabase } from './database.ts';
import { withProgress } from './progress.ts';
import { causeOf, reasonOf } from './reason.ts';

interface CopyOptions {
  from: string;
  to: string;
  resume: boolean;
}

/** Rows that are in memory at a time, and that are written in one go. */
const batchRows = 2_000;

export async function copy({ from, to, resume }: CopyOptions): Promise<void> {
  if (shownDatabase(from) === shownDatabase(to)) {
    throw new Refusal('--from and --to are the same database. Name another to copy to.');
  }
  await using source = await openArchive(from, { create: false });
  await using target = await openArchive(to, { create: true });
  if ((await source.unfinished()) !== undefined) {
    throw new Refusal(
      `${shownDatabase(from)} is itself a copy that is not whole. Finish that one first.`,
    );
  }
  await prepare(target, shownDatabase(from), shownDatabase(to), resume);

  const { counts, digest } = await carry(source, target).catch((error: unknown) => {
    if (error instanceof Refusal || reasonOf(error) === undefined) throw error;
    const why = `The copy broke off: ${causeOf(error)}.`;
    throw new Refusal(`${why} Go on with --resume when that is mended.`, { cause: error });
  });
  const shown = tables.map((table, at) => `${counts[at]} ${table}`).join(', ');
  console.log(`${shownDatabase(to)} holds all of ${shownDatabase(from)}: ${shown}.`);
  console.log(`SHA-256 of both: ${digest}`);
}

/** Copies what is not there yet, compares all, and says how many rows of each table that are. */
async function carry(
  source: Archive,
  target: Archive,
): Promise<{ counts: readonly number[]; digest: string }> {
  const version = await source.version();
  const counts = await countsOf(source);
  const total = counts.reduce((sum, count) => sum + count, 0);
  await withProgress('Copying', 'rows', async (onProgress) => {
    let done = 0;
    for (const table of tables) {
      done += await copyTable(source, target, table, (copied) => onProgress(done + copied, total));
    }
  });
  const [digest, copied] = await withProgress('Comparing', 'rows', async (onProgress) => {
    let done = 0;
    const count = (rows: number) => onProgress((done += rows), 2 * total);
    return [await digestOf(source, count), await digestOf(target, count)] as const;
  });
  if (digest !== copied || version !== (await source.version())) {
    throw new Refusal(
      'The two differ: something has changed one of them meanwhile. ' +
        'Stop the service, and copy to an empty database.',
    );
  }
  await target.finish();
  return { counts, digest };
}

/** Refuses a target with anything in it, except the part of this very copy that is there already. */
async function prepare(target: Archive, from: string, to: string, resume: boolean): Promise<void> {
  const unfinished = await target.unfinished();
  if (unfinished !== undefined) {
    if (unfinished !== from) {
      throw new Refusal(
        `${to} holds a part of a copy of ${unfinished}. Copy to an empty database.`,
      );
    }
    if (!resume) throw new Refusal(`${to} holds a part of this copy already. Go on with --resume.`);
    return;
  }
  for (const table of tables) {
    if ((await target.lastKey(table)) === undefined) continue;
    throw new Refusal(`${to} is not empty: it holds ${table}. Copy to an empty database.`);
  }
  await target.begin(from);
}

/** Returns how many rows the table has. */
async function copyTable(
  source: Archive,
  target: Archive,
  table: Table,
  onProgress: (copied: number) => void,
): Promise<number> {
  let after = await target.lastKey(table);
  let copied = after === undefined ? 0 : await target.count(table);
  for (;;) {
    onProgress(copied);
    const rows = await source.read(table, after, batchRows);
    if (rows.length === 0) return copied;
    await target.add(table, rows);
    copied += rows.length;
    after = keyOf(table, rows);
  }
}

/** SHA-256 of every row of every table in order, as hexadecimal. */
async function digestOf(archive: Archive, onProgress: (rows: number) => void): Promise<string> {
  const digest = createHash('sha256');
  for (const table of tables) {
    digest.update(`${table}\n`);
    for (let after: Row | undefined; ;) {
      const rows = await archive.read(table, after, batchRows);
      if (rows.length === 0) break;
      for (const row of rows) digest.update(`${JSON.stringify(row.map(comparable))}\n`);
      onProgress(rows.length);
      after = keyOf(table, rows);
    }
  }
  return digest.digest('hex');
}

/** Bytes as text, because the engines have them in different classes. */
function comparable(value: Row[number]): string | number | null {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}

function keyOf(table: Table, rows: readonly Row[]): Row | undefined {
  return rows.at(-1)?.slice(0, keyColumns[table]);
}

function countsOf(archive: Archive): Promise<number[]> {
  return Promise.all(tables.map((table) => archive.count(table)));
}
