import { resolve } from 'node:path';
import { fileOf } from '../database.ts';
import { backupDatabase, restoreDatabase } from '../../sqlite/backup.ts';
import type { DatabaseOptions } from '../options.ts';
import { printResult } from '../output.ts';
import { withProgress } from '../progress.ts';

export async function backup(file: string, options: DatabaseOptions): Promise<void> {
  const path = fileOf(options.database);
  const target = resolve(file);
  await withProgress('Copying', 'pages', (onProgress) => backupDatabase(path, target, onProgress));
  const text = `Backed up ${path} to ${target} and verified the copy.`;
  printResult(options, { database: path, file: target }, text);
}

export async function restore(file: string, options: DatabaseOptions): Promise<void> {
  const path = fileOf(options.database);
  const source = resolve(file);
  const previous = await withProgress('Restoring', 'pages', (onProgress) =>
    restoreDatabase(source, path, onProgress),
  );
  const kept = previous === undefined ? '' : `\nThe previous database is kept at ${previous}.`;
  const text = `Restored ${source} to ${path}.${kept}`;
  printResult(options, { database: path, file: source, previous }, text);
}
