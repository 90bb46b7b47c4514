/**
 * Copies all data of one database to another, on the same engine or a different one.
 */
import { tables, type Archive } from '../../copy/archive.ts';
import { copyAndCompare } from '../../copy/copy.ts';
import { Refusal } from '../../refusal.ts';
import { displayName, openArchive } from '../database.ts';
import { printResult } from '../output.ts';
import { withProgress } from '../progress.ts';
import { causeOf, reasonOf } from '../errors.ts';

interface CopyOptions {
  from: string;
  to: string;
  resume: boolean;
  json?: true | undefined;
}

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
      `${sourceName} is itself an incomplete copy. Finish it first with "npx plant-store copy --resume".`,
    );
  }
  await prepareTarget(target, sourceName, targetName, resume);

  const { rows, digest } = await copyAndCompare(source, target, withProgress).catch(
    (error: unknown) => {
      if (error instanceof Refusal || reasonOf(error) === undefined) throw error;
      throw new Refusal(
        `The copy was interrupted: ${causeOf(error)}. Fix the cause, then continue with --resume.`,
        { cause: error },
      );
    },
  );
  const summary = Object.entries(rows).map(([table, count]) => `${table}: ${count}`);
  const text = `Copied ${sourceName} to ${targetName} (${summary.join(', ')}).\nSHA-256 of both: ${digest}`;
  printResult(options, { from: sourceName, to: targetName, rows, sha256: digest }, text);
}

/** Refuses a target that contains data, unless that data is an incomplete copy of the same source. */
async function prepareTarget(
  target: Archive,
  from: string,
  to: string,
  resume: boolean,
): Promise<void> {
  const unfinished = await target.unfinishedSource();
  if (unfinished === from) {
    if (resume) return;
    throw new Refusal(`${to} already contains part of this copy. Continue with --resume.`);
  }
  if (unfinished !== undefined) {
    throw new Refusal(`${to} contains part of a copy of ${unfinished}. Copy to an empty database.`);
  }
  for (const table of tables) {
    if ((await target.lastKey(table)) === undefined) continue;
    throw new Refusal(`${to} is not empty: it contains ${table}. Copy to an empty database.`);
  }
  await target.beginCopy(from);
}
