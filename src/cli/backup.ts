import { resolve } from 'node:path';
import { fileOf } from './database.ts';
import { backupDatabase, restoreDatabase } from '../sqlite/backup.ts';
import { withProgress } from './progress.ts';

export async function backup(file: string, { database }: { database: string }): Promise<void> {
  const path = fileOf(database);
  const target = resolve(file);
  await withProgress('Copying', 'pages', (onProgress) => backupDatabase(path, target, onProgress));
  console.log(`Backed up ${path} to ${target} and verified the copy.`);
}

export async function restore(file: string, { database }: { database: string }): Promise<void> {
  const path = fileOf(database);
  const source = resolve(file);
  const previous = await withProgress('Restoring', 'pages', (onProgress) =>
    restoreDatabase(source, path, onProgress),
  );
  console.log(`Restored ${source} to ${path}.`);
  if (previous !== undefined) console.log(`The previous database is kept at ${previous}.`);
}
