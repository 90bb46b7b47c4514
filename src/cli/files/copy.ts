/**
 * Copies all data of one database to another, on the same engine or a different one.
 */
import { tables, type Target } from '../../copy/archive.ts';
import { copyAndCompare } from '../../copy/copy.ts';
import { Refusal } from '../../refusal.ts';
import { displayName, openArchive } from '../database.ts';
import { printResult } from '../output.ts';
import { withProgress } from '../progress.ts';

interface CopyOptions {
  from: string;
  to: string;
  json?: true | undefined;
}

export async function copy(options: CopyOptions): Promise<void> {
  const from = displayName(options.from);
  const to = displayName(options.to);
  if (from === to) {
    throw new Refusal('--from and --to are the same database. Choose another with --to.');
  }
  await using source = await openArchive(options.from, { create: false });
  await using target = await openArchive(options.to, { create: true });
  const { rows, digest } = await target.fill(async (empty) => {
    await refuseContent(empty, to);
    return copyAndCompare(source, empty, withProgress);
  });
  const summary = Object.entries(rows).map(([table, count]) => `${table}: ${count}`);
  const text = `Copied ${from} to ${to} (${summary.join(', ')}).\nSHA-256 of both: ${digest}`;
  printResult(options, { from, to, rows, sha256: digest }, text);
}

async function refuseContent(target: Target, name: string): Promise<void> {
  for (const table of tables) {
    if ((await target.read(table, undefined, 1)).length === 0) continue;
    throw new Refusal(`${name} is not empty: it contains ${table}. Copy to an empty database.`);
  }
}
