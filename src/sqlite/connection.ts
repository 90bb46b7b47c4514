/**
 * A connection to the database file, which stays open. Each thread has its own.
 */
import type { DatabaseSync } from 'node:sqlite';
import { storageUnavailable } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { openCheckpoint } from './file/checkpoint.ts';
import { openDatabase, type OpenOptions } from './file/open.ts';
import { prepare, type Statement } from './driver.ts';
import { isDamaged, isFailedSync, problemOf, type Stage } from './errors.ts';
import { beginImmediate } from './file/locks.ts';
import { openSchemaCheck } from './file/migrate.ts';
import { OpenFile, refuseOtherFile, type FileId } from './file/same-file.ts';
import type { WriteSettings } from '../storage.ts';
import { openTables, type Tables } from './tables/tables.ts';

/** An open connection and its prepared statements. */
export interface OpenConnection extends Tables {
  database: DatabaseSync;
  file: OpenFile;
  /** Throws Refusal if a newer program has made the schema unusable. */
  checkSchema: () => void;
  checkpoint: () => void;
  /** Differs after each commit of another connection, in any process (sqlite.org/pragma.html#pragma_data_version). */
  readDataVersion: Statement<[version: number]>;
  dataVersion: number | undefined;
  beginReads: Statement;
  endReads: Statement;
}

/** Reads block the event loop while they wait for a lock. In WAL mode, they rarely have to. */
const readLockTimeoutMs = 20;

export interface ConnectionSettings extends WriteSettings {
  path: string;
  /** Maximum size of SQLite's page cache, which fills as pages are read. */
  cacheKiB: number;
  /** The only file that it opens. By default, any file at the path. */
  fileId?: FileId;
  /** Called once, if `checkFile` finds that the file is lost, or if a sync has failed. Nothing is read or written afterwards. */
  onFailure?: ((cause: unknown) => void) | undefined;
}

export class Connection {
  /** Why nothing is read or written any more: the file is lost, or a sync has failed. */
  #failure: unknown;
  readonly #settings: ConnectionSettings;
  #open: OpenConnection | undefined;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
  }

  /** Opens the file, which the first write does otherwise. Throws Refusal if it cannot be used. */
  open(options: OpenOptions): OpenConnection {
    const { path, cacheKiB, fileId } = this.#settings;
    if (fileId !== undefined) refuseOtherFile(path, fileId);
    using opening = new DisposableStack();
    const database = opening.use(openDatabase(path, options));
    database.exec(`PRAGMA cache_size = -${cacheKiB}; PRAGMA busy_timeout = ${readLockTimeoutMs}`);
    const file = new OpenFile(database, path, fileId);
    this.#open = {
      ...openTables(database, this.#settings),
      database,
      file,
      checkSchema: openSchemaCheck(database, path),
      checkpoint: openCheckpoint(database),
      readDataVersion: prepare(database, 'PRAGMA data_version'),
      dataVersion: undefined,
      beginReads: prepare(database, 'BEGIN'),
      endReads: prepare(database, 'COMMIT'),
    };
    opening.move();
    return this.#open;
  }

  /** Call it regularly, because reads rely on the last check. */
  checkFile(): void {
    const fault = this.#findFault();
    if (fault !== undefined) this.#fail(fault);
  }

  #fail(cause: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = cause;
    this.#settings.onFailure?.(cause);
  }

  #findFault(): Refusal | undefined {
    try {
      this.#open?.file.check();
      return undefined;
    } catch (error) {
      return error instanceof Refusal ? error : undefined; // the next read or write gets other errors too
    }
  }

  /** All reads until `endReads` see one snapshot. Without it, each statement sees the latest state. */
  beginReads(): void {
    this.read((open) => {
      open.beginReads.run();
      this.#refresh(open);
    });
  }

  endReads(): void {
    if (this.#open?.database.isTransaction !== true) return; // an error has ended it
    try {
      this.#open.endReads.run();
    } catch (error) {
      this.#recoverFrom(error, 'before-commit'); // which ends it too
    }
  }

  /** Runs reads in the transaction of `beginReads`, or each statement in its own. */
  read<T>(work: (open: OpenConnection) => T): T {
    if (this.#failure !== undefined) throw storageUnavailable(this.#failure);
    try {
      return work(this.#open ?? this.open({ create: false }));
    } catch (error) {
      throw this.#recoverFrom(error, 'before-commit');
    }
  }

  /**
   * Runs `work` in one transaction, and returns when its commit is on disk. Waits for locks of other processes
   * until `deadlineMs`, by nowMs().
   */
  write<T>(work: (tables: Tables) => T, deadlineMs: number): T {
    if (this.#failure !== undefined) throw storageUnavailable(this.#failure);
    let stage: Stage = 'before-commit';
    try {
      const open = this.#open ?? this.open({ create: false, deadlineMs });
      beginImmediate(open.database, deadlineMs);
      this.#refresh(open); // under the lock, so that nobody can change anything afterwards
      open.stores.begin();
      const result = work(open);
      open.stores.flush();
      open.file.check();
      stage = 'commit';
      open.database.exec('COMMIT');
      open.file.check(); // a change to a deleted file must not be acknowledged
      return result;
    } catch (error) {
      this.#open?.counts.clear();
      this.#open?.grants.clearVersion();
      if (isFailedSync(error, stage)) this.#fail(error);
      throw this.#recoverFrom(error, stage);
    }
  }

  /** Call it after writes. A failed sync is as that of a commit. */
  checkpoint(): void {
    if (this.#open === undefined) return;
    try {
      this.#open.checkpoint();
    } catch (error) {
      if (isFailedSync(error, 'before-commit')) this.#fail(error);
      this.#recoverFrom(error, 'before-commit');
    }
  }

  close(): void {
    this.#open?.database.close();
    this.#open = undefined;
  }

  /** Rolls back. Returns what to throw for `error`. */
  #recoverFrom(error: unknown, stage: Stage): unknown {
    const { database } = this.#open ?? {};
    if (database?.isTransaction) database.exec('ROLLBACK');
    // Drops the page from the page cache: the disk can have the right one next time.
    if (isDamaged(error)) database?.exec('PRAGMA shrink_memory');
    // If the file was moved or truncated, that explains more than SQLite's error.
    return problemOf(stage === 'commit' ? error : (this.#findFault() ?? error), stage);
  }

  /**
   * Call it at the start of a transaction. If another connection has written since the last one, drops what is cached.
   * Throws Refusal if the schema has become unusable.
   */
  #refresh(open: OpenConnection): void {
    const dataVersion = open.readDataVersion.get()?.[0];
    if (dataVersion === open.dataVersion) return;
    open.checkSchema();
    open.grants.clearVersion();
    open.counts.clear();
    open.dataVersion = dataVersion; // last, so that the next call checks again if a read fails
  }
}
