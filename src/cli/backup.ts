import { resolve } from 'node:path';
import { Presets, SingleBar } from 'cli-progress';
import { fileOf } from './database.ts';
import { backupDatabase, restoreDatabase, type OnProgress } from '../sqlite/backup.ts';

export async function backup(file: string, { database }: { database: string }): Promise<void> {
  const path = fileOf(database);
  await withProgress('Copying', (onProgress) => backupDatabase(path, resolve(file), onProgress));
  console.log(`${path} is backed up to ${resolve(file)}, and the copy is checked.`);
}

export async function restore(file: string, { database }: { database: string }): Promise<void> {
  const path = fileOf(database);
  const kept = await withProgress('Restoring', (onProgress) =>
    restoreDatabase(resolve(file), path, onProgress),
  );
  console.log(`${resolve(file)} is restored to ${path}.`);
  if (kept !== undefined) console.log(`The database that was there is kept at ${kept}.`);
}

/** A bar on standard error: a moving one on a terminal, a line now and then elsewhere. */
async function withProgress<T>(
  title: string,
  work: (onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const bar = new SingleBar(
    {
      format: `${title} [{bar}] {percentage}% | {value} of {total} pages`,
      stream: process.stderr,
      noTTYOutput: true,
    },
    Presets.legacy,
  );
  const exit = () => process.exit(130); // runs what cleans up on exit
  process.once('SIGINT', exit);
  process.once('SIGTERM', exit);
  try {
    return await work((done, total) => {
      if (bar.isActive) bar.setTotal(total);
      else bar.start(total, done);
      bar.update(done);
    });
  } finally {
    bar.stop();
    process.off('SIGINT', exit);
    process.off('SIGTERM', exit);
  }
}
