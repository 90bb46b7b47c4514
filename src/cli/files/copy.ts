/**
 * Copies all data of one database to another, on the same engine or a different one.
 */
import { createHash } from 'node:crypto';
import { keyColumnCounts, tables, type Archive, type Row, type Table } from '../../copy/archive.ts';
import { Refusal } from '../../refusal.ts';
import { displayName, openArchive } from '../database.ts';
import { printResult } from '../output.ts';
import { program } from '../program.ts';
import { withProgress } from '../progress.ts';
import { causeOf, reasonOf } from '../errors.ts';

interface CopyOptions {
  from: string;
  to: string;
  resume: boolean;
  json?: true | undefined;
}

/** Number of rows that are read into memory and then written together. */
const batchRows = 2_000;

export async function copy(options: CopyOptions): Promise<void> {
  const { from, to, resume } = options;
  const sourceName = displayName(from);
  const targetName = displayName(to);
  if (sourceName === targetName) {
    throw new Refusal('--from and --to are the same database. Choose another with --to.');
  }
  await using source = await openArchive(from, { create: false });
  await using target = await openArchive(to, { create: true });
  if ((await source.unfinishedSource()) !== undefined) {
    throw new Refusal(
      `${sourceName} is itself an incomplete copy. Finish it first with "${program} copy --resume".`,
    );
  }
  await prepareTarget(target, sourceName, targetName, resume);

  const { rows, digest } = await copyAndCompare(source, target).catch((error: unknown) => {
    if (error instanceof Refusal || reasonOf(error) === undefined) throw error;
    throw new Refusal(
      `The copy was interrupted: ${causeOf(error)}. Fix that, then continue with --resume.`,
      { cause: error },
    );
  });
  const summary = Object.entries(rows).map(([table, count]) => `${table}: ${count}`);
  const text = `Copied ${sourceName} to ${targetName} (${summary.join(', ')}).\nSHA-256 of both: ${digest}`;
  printResult(options, { from: sourceName, to: targetName, rows, sha256: digest }, text);
}

/** Copies the rows that are missing, then compares both databases. Returns the number of rows per table. */
async function copyAndCompare(
  source: Archive,
  target: Archive,
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

/** Refuses a target that contains data, unless that data is an incomplete copy of the same source. */
async function prepareTarget(
  target: Archive,
  from: string,
  to: string,
  resume: boolean,
): Promise<void> {
  const unfinished = await target.unfinishedSource();
  if (unfinished !== undefined) {
    if (unfinished !== from) {
      throw new Refusal(
        `${to} contains part of a copy of ${unfinished}. Copy to an empty database.`,
      );
    }
    if (!resume) {
      throw new Refusal(`${to} already contains part of this copy. Continue with --resume.`);
    }
    return;
  }
  for (const table of tables) {
    if ((await target.lastKey(table)) === undefined) continue;
    throw new Refusal(`${to} is not empty: it contains ${table}. Copy to an empty database.`);
  }
  await target.beginCopy(from);
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
    key = rows.at(-1)?.slice(0, keyColumnCounts[table]);
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
