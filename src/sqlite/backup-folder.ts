/**
 * A folder of backups. A file has a name of these only once it was restored and compared, so the newest name is the
 * last verified backup.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const nameOfBackup =
  /^plant-store-(\d{4})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3])([0-5]\d)([0-5]\d)Z\.backup$/;

/** The name of a backup that begins now. Names sort by time. */
export function backupName(at = new Date()): string {
  return `plant-store-${at.toISOString().replaceAll(/[-:]|\.\d+/g, '')}.backup`;
}

/** A process has one folder. If its disk hangs, this keeps one thread of Node waiting and not all. */
let reading: Promise<string[]> | undefined;

/** When the newest verified backup was begun. Undefined if there is none, or the folder cannot be read. */
export async function lastBackupAt(folder: string): Promise<Date | undefined> {
  reading ??= backupsIn(folder).finally(() => (reading = undefined));
  const last = (await reading.catch(() => [])).at(-1);
  if (last === undefined) return undefined;
  return new Date(last.replace(nameOfBackup, '$1-$2-$3T$4:$5:$6Z'));
}

/** Removes all but the newest backups. Files with other names stay. */
export async function removeOldBackups(folder: string, keep: number): Promise<void> {
  const names = await backupsIn(folder);
  for (const name of names.slice(0, -keep)) await rm(join(folder, name), { force: true });
}

/** The oldest first. Leaves out those of a clock that was ahead: they would look newer than each new one. */
async function backupsIn(folder: string): Promise<string[]> {
  const now = backupName();
  const files = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile());
  const names = files.map(({ name }) => name);
  return names.filter((name) => nameOfBackup.test(name) && name <= now).toSorted();
}
