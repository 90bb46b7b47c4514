/**
 * Which storage an address means: the one place that knows them all.
 */
import { resolve } from 'node:path';
import type { Archive } from '../archive.ts';
import { Problem } from '../problem.ts';
import { UsageError, Refusal } from '../refusal.ts';
import type { Storage } from '../storage.ts';
import { reasonOf } from './reason.ts';
import { replacePasswords } from './redact.ts';
import { endingSignals } from './signals.ts';

export interface OpenOptions {
  /** Whether a file, or a schema in the database of a server, is made where there is none. */
  create: boolean;
  /** Whether a server that does not answer yet, or is being migrated, is left for later. */
  mayBeDown?: boolean;
  /** Whether what is there is spread over the machines of a cluster, however long it takes. */
  distribute?: boolean;
  /** Called if another process keeps a file locked for long. Without it, a person is told so. */
  onLongWait?: (() => void) | undefined;
  /** Called once, if the disk of a file fails a commit: from then on every write is refused. */
  onDiskFailure?: ((cause: unknown) => void) | undefined;
  /** Told once if the file is no longer in its place, or not whole, and with undefined if it is again. */
  onFileFault?: ((fault: Refusal | undefined) => void) | undefined;
}

const longWaitMs = 5_000;

/** Opens the storage at an address that options.ts let through. Throws Refusal where it cannot. */
export async function openStorage(url: string, options: OpenOptions): Promise<Storage> {
  const { create, mayBeDown = false, distribute = false, onFileFault, onDiskFailure } = options;
  if (isFile(url)) {
    const { onLongWait = () => sayThatItIsLocked(url) } = options;
    const { SqliteStorage } = await import('../sqlite/storage.ts');
    return new SqliteStorage(fileOf(url), { create, onLongWait, onFileFault, onDiskFailure });
  }
  const { PostgresStorage } = await import('../postgres/storage.ts').catch(refuseMissingDriver);
  const storage = new PostgresStorage(url, { create, distribute });
  try {
    await (mayBeDown
      ? storage.openSoon()
      : unlessSignalled(storage, sayingIfLong(url, storage.open())));
  } catch (error) {
    if (!(mayBeDown && error instanceof Problem)) {
      await storage[Symbol.asyncDispose]();
      throw error;
    }
  }
  return storage;
}

function sayThatItIsLocked(url: string): void {
  console.error(
    `${shownDatabase(url)} is in use: another process may be upgrading it. ` +
      'Waiting until that is done; press Ctrl-C to give up.',
  );
}

function sayingIfLong<T>(url: string, opening: Promise<T>): Promise<T> {
  const timer = setTimeout(() => {
    console.error(`${shownDatabase(url)} is being upgraded. With large tables this takes long.`);
  }, longWaitMs);
  return opening.finally(() => clearTimeout(timer));
}

/** A signal that ends the process meanwhile first lets the storage give a migration back to others. */
function unlessSignalled(storage: Storage, opening: Promise<void>): Promise<void> {
  const opened = Promise.withResolvers<void>();
  let isEnding = false;
  const end = (signal: NodeJS.Signals) => {
    isEnding = true; // nobody is told anything any more
    for (const each of endingSignals) process.off(each, end);
    const ended = Promise.resolve(storage[Symbol.asyncDispose]());
    void ended.finally(() => process.kill(process.pid, signal));
  };
  for (const signal of endingSignals) process.on(signal, end);
  const settle = (outcome: () => void) => {
    if (isEnding) return;
    for (const signal of endingSignals) process.off(signal, end);
    outcome();
  };
  opening.then(
    () => settle(opened.resolve),
    (error: unknown) => settle(() => opened.reject(error)),
  );
  return opened.promise;
}

/** Opens all that is in a database, to be copied from or to. Throws Refusal where it cannot. */
export async function openArchive(
  url: string,
  { create }: Pick<OpenOptions, 'create'>,
): Promise<Archive> {
  if (isFile(url)) {
    const { SqliteArchive } = await import('../sqlite/archive.ts');
    return new SqliteArchive(fileOf(url), { create, onLongWait: () => sayThatItIsLocked(url) });
  }
  const { PostgresArchive } = await import('../postgres/archive.ts').catch(refuseMissingDriver);
  return sayingIfLong(url, PostgresArchive.open(url, { create })).catch((error: unknown) => {
    const reason = error instanceof UsageError ? undefined : reasonOf(error);
    if (reason === undefined) throw error;
    // Two databases are opened for a copy: which of them?
    throw new Refusal(`${shownDatabase(url)}: ${reason}`, { cause: error });
  });
}

/** The driver is installed by those who need it. */
function refuseMissingDriver(error: unknown): never {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) {
    throw error;
  }
  throw new Refusal('PostgreSQL needs its driver beside Plant Store: npm install pg', {
    cause: error,
  });
}

/** The address as people may see it: a whole path, and no password. */
export function shownDatabase(url: string): string {
  return isFile(url) ? fileOf(url) : replacePasswords(url, '');
}

/** The same as an option of a command; who types it puts in the password. */
export function databaseOption(url: string): string {
  return isFile(url) ? `sqlite:${fileOf(url)}` : replacePasswords(url, ':PASSWORD');
}

/** The file of `sqlite:PATH`. It is made absolute, so that no name means anything special to SQLite. */
export function fileOf(url: string): string {
  if (!isFile(url)) {
    throw new Refusal(
      'This is for files, sqlite:PATH. A PostgreSQL server brings pg_dump and pg_restore for that.',
    );
  }
  return resolve(url.slice('sqlite:'.length));
}

export function isFile(url: string): boolean {
  return /^sqlite:/i.test(url);
}
