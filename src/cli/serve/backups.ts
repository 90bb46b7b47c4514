/**
 * Backs up an SQLite database at intervals. The command `backup` does the work as a process of its own: it takes neither
 * time nor memory of those that serve, and can be killed at any moment.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Refusal } from '../../refusal.ts';
import { backupName, lastBackupAt, removeOldBackups } from '../../sqlite/backup-folder.ts';
import { isLocked, writingRefusal } from '../../sqlite/errors.ts';
import { lockFile } from '../../sqlite/file/files.ts';
import { systemCode } from '../../shared/system-errors.ts';
import { fileOf } from '../database.ts';
import { causeOf } from '../errors.ts';
import type { ServeOptions } from './options.ts';

/** Until the next attempt after a failure, and until a change of the clock is noticed. */
const maxPauseMs = 15 * 60_000;
const heartbeatTimeoutMs = 10_000;
/** A tenth of the usual share of the processor: with less, the WAL grows for long while the snapshot is copied. */
const niceness = 10;

/**
 * Notes in the folder which database it is for, before the first backup. Throws Refusal if it is for another one: the backups
 * of one would count for both. A folder that cannot be used is no reason not to serve (`backup failed`).
 */
export function claimFolder({ backupDir, database }: ServeOptions): void {
  if (backupDir === undefined) return;
  const [folder, path] = [resolve(backupDir), fileOf(database)];
  const note = join(folder, 'plant-store.database');
  try {
    // Not with its parents: below /proc, Node would try it for ever.
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    writeFileSync(note, path, { flag: 'wx' });
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') return;
    const owner = existsSync(note) ? readFileSync(note, 'utf8') : '';
    if (owner === path || owner === '') return; // another service may be writing it
    throw new Refusal(
      `${folder} is for backups of ${owner}. Choose another folder with --backup-dir; or if that database is now ${path}, remove ${note}.`,
    );
  }
}

/** Until `stopping` aborts. Of several services with the same folder, one makes each backup. */
export async function makeBackups(
  options: ServeOptions,
  log: Logger,
  stopping: AbortSignal,
): Promise<void> {
  const { backupEvery: everyMs, backupDir } = options;
  if (everyMs === undefined || backupDir === undefined) return;
  const folder = resolve(backupDir);
  while (!stopping.aborted) {
    let pauseMs = Math.min(everyMs, maxPauseMs);
    try {
      claimFolder(options);
      using _ = lockFile(join(folder, 'plant-store.lock'), 0);
      const dueInMs = ((await lastBackupAt(folder))?.getTime() ?? 0) + everyMs - Date.now();
      if (dueInMs <= 0) await backUp({ ...options, folder }, log, stopping);
      pauseMs = Math.min(pauseMs, Math.max(dueInMs, 0));
    } catch (err) {
      if (!isLocked(err) && !stopping.aborted) {
        log.error({ err: writingRefusal(err, folder) }, 'backup failed');
      }
    }
    await wait(pauseMs, undefined, { signal: stopping }).catch(() => {});
  }
}

async function backUp(
  options: ServeOptions & { folder: string },
  log: Logger,
  stopping: AbortSignal,
): Promise<void> {
  const { folder, backupKeep, backupHeartbeat } = options;
  const file = join(folder, backupName());
  const startedMs = Date.now();
  await runBackup(file, options, stopping);
  log.info({ file, ms: Date.now() - startedMs }, 'backup verified');
  await removeOldBackups(folder, backupKeep);
  if (backupHeartbeat === undefined) return;
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(heartbeatTimeoutMs)]);
  try {
    const { ok, status, body } = await fetch(backupHeartbeat, { signal });
    await body?.cancel();
    if (!ok) throw new Refusal(`The URL responded with ${status}.`);
  } catch (error) {
    log.warn({ err: new Refusal(causeOf(error)) }, 'backup heartbeat failed'); // the URL can be secret
  }
}

/** Rejects with what the command has printed if it fails. */
async function runBackup(
  file: string,
  { database, keepChanges }: ServeOptions,
  stopping: AbortSignal,
): Promise<void> {
  const [, program = ''] = process.argv;
  const keep = keepChanges === 0 ? '0' : '30d'; // only 0 makes a difference
  const settings = ['--database', database, '--keep-changes', keep];
  const args = [...process.execArgv, program, 'backup', file, ...settings];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    signal: stopping,
    killSignal: 'SIGKILL', // while it checks a file, it does not handle another one
  });
  const closed = new Promise<number | null>((done) => child.once('close', done));
  child.on('error', () => {}); // `close` follows
  if (child.pid !== undefined) setPriority(child.pid, niceness);
  const message = await text(child.stderr);
  if ((await closed) === 0) return;
  throw new Refusal(message.replace(/^error: /m, '').trim() || 'Its process was killed.');
}
