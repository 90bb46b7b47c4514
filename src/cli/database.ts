/**
 * Opens the storage of a database address. No other module depends on all engines.
 */
import { resolve } from 'node:path';
import type { Archive } from '../copy/archive.ts';
import { Problem } from '../problem.ts';
import type { PostgresStorage } from '../postgres/storage.ts';
import { NoDatabase, Refusal, UsageError } from '../refusal.ts';
import type { Check } from '../shared/finding.ts';
import type { SqliteStorage } from '../sqlite/storage.ts';
import type { Storage } from '../storage.ts';
import { printError } from './output.ts';
import { reasonOf, refuseMissing, replacePasswords } from './errors.ts';

/** The options of both engines. Each ignores those of the other. */
export type OpenOptions = ConstructorParameters<typeof SqliteStorage>[1] &
  ConstructorParameters<typeof PostgresStorage>[1] & {
    /** Returns even if a database server is unavailable or being migrated. The next request tries again. */
    canBeUnavailable?: boolean;
  };

/** Opens the storage of a valid address (options.ts). Throws Refusal if that fails. */
export async function openStorage(url: string, options: OpenOptions): Promise<Storage> {
  if (isFile(url)) {
    const { SqliteStorage } = await import('../sqlite/storage.ts');
    return new SqliteStorage(fileOf(url), { onLongWait: () => reportLock(url), ...options });
  }
  const { PostgresStorage } = await import('../postgres/storage.ts').catch(refuseMissing('pg'));
  await using opening = new AsyncDisposableStack();
  const storage = opening.use(new PostgresStorage(url, options));
  if (options.canBeUnavailable) {
    await storage.openWithTimeout().catch((error: unknown) => {
      if (!(error instanceof Problem)) throw error;
    });
  } else await storage.open();
  opening.move();
  return storage;
}

/** Undefined if there is no such database, or nothing of Plant Store in it. */
export async function openExisting(
  url: string,
  options: Omit<OpenOptions, 'create'> = {},
): Promise<Storage | undefined> {
  try {
    return await openStorage(url, { ...options, create: false });
  } catch (error) {
    if (error instanceof NoDatabase) return undefined;
    throw error;
  }
}

function reportLock(url: string): void {
  printError(
    `${displayName(url)} is locked: another process may be upgrading it. ` +
      'Waiting for the lock; press Ctrl-C to stop.',
  );
}

/** Opens a database to read all its data, or to copy it from or to. Throws Refusal if that fails. */
export async function openArchive(
  url: string,
  options: { create: boolean; isUnchanged?: boolean },
): Promise<Archive> {
  if (isFile(url)) {
    const { SqliteArchive } = await import('../sqlite/archive.ts');
    return new SqliteArchive(fileOf(url), { ...options, onLongWait: () => reportLock(url) });
  }
  const { openPostgresArchive } = await import('../postgres/archive.ts').catch(refuseMissing('pg'));
  return openPostgresArchive(url, options).catch((error: unknown) => {
    const reason = error instanceof UsageError ? undefined : reasonOf(error);
    if (reason === undefined) throw error;
    // A copy opens two databases, so the message shows which one failed.
    throw new Refusal(`${displayName(url)}: ${reason}`, { cause: error });
  });
}

/** The checks of `plant-store doctor`. What they open is closed with the resources. */
export async function openChecks(url: string, resources: AsyncDisposableStack): Promise<Check[]> {
  if (isFile(url)) return (await import('../sqlite/doctor.ts')).fileChecks(fileOf(url), resources);
  const { serverChecks } = await import('../postgres/doctor.ts').catch(refuseMissing('pg'));
  return serverChecks(url, resources);
}

/** A name of the database for messages: an absolute path, or an address without its password. */
export function displayName(url: string): string {
  return isFile(url) ? fileOf(url) : replacePasswords(url, '');
}

/** The value of --database in an example command, with a placeholder for the password. */
export function databaseOption(url: string): string {
  return isFile(url) ? `sqlite:${fileOf(url)}` : replacePasswords(url, ':PASSWORD');
}

/** The absolute path of `sqlite:PATH`. SQLite gives some relative names a special meaning. */
export function fileOf(url: string): string {
  if (!isFile(url)) {
    throw new UsageError(
      'This works only with SQLite files (sqlite:PATH). For PostgreSQL, see docs/how-to/back-up.md.',
    );
  }
  const path = resolve(url.slice('sqlite:'.length));
  if (!path.includes('\uFFFD')) return path;
  throw new Refusal(`The path ${path} is not valid UTF-8. Use a folder whose name is.`);
}

export function isFile(url: string): boolean {
  return /^sqlite:/i.test(url);
}
