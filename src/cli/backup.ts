import { resolve } from 'node:path';
import { fileOf } from './database.ts';
import { backupDatabase, restoreDatabase } from '../sqlite/backup.ts';
import { withProgress } from './progress.ts';

export async function backup(file: string, { database }: { database: string }): Promise<void> {
  const path = fileOf(database);
  await withProgress('Copying', 'pages', (onProgress) =>
    backupDatabase(path, resolve(file), onProgress),
  );
  console.log(`${path} is backed up to ${resolve(file)}, and the copy is checked.`);
}

export async function restore(file: string, { database }: { database: string }): Promise<void> {
  const path = fileOf(database);
  const kept = await withProgress('Restoring', 'pages', (onProgress) =>
    restoreDatabase(resolve(file), path, onProgress),
  );
  console.log(`${resolve(file)} is restored to ${path}.`);
  if (kept !== undefined) console.log(`The database that was there is kept at ${kept}.`);
}
