/**
 * A connection to the database file. After an error that can make it unusable, it closes, and the next use opens
 * another. Each thread has its own.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { storageUnavailable } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { openCheckpoint } from './file/checkpoint.ts';
import { openDatabase, type OpenOptions } from './file/open.ts';
import { prepare, type Statement } from './driver.ts';
import { isFailedSync, leavesConnectionUsable, problemOf, type Stage } from './errors.ts';
import { beginImmediate, nowMs } from './file/locks.ts';
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
  beginReads: StatementSync;
  endReads: StatementSync;
}

/** Reads block the event loop while they wait for a lock. In WAL mode, they rarely have to. */
const readLockTimeoutMs = 20;

export interface ConnectionSettings extends WriteSettings {
  path: string;
  /** Maximum size of SQLite's page cache, which fills as pages are read. */
  cacheKiB: number;
  /** The only file that it opens. By default, it is the first that it opened. */
  fileId?: FileId;
  /** Called once, when the file is lost. All later reads are refused. */
  onFileLost?: ((cause: unknown) => void) | undefined;
}

export class Connection {
  /** The failed sync after which all writes are refused. */
  diskFailure: unknown;
  readonly #settings: ConnectionSettings;
  #open: OpenConnection | undefined;
  /** Why all reads are refused: the file is lost. */
  #fileFault: unknown;
  /** Why reads are refused until the next `poll`: the file could not be reopened. */
  #openFailure: unknown;

  constructor(settings: ConnectionSettings) {
    this.#settings = { ...settings };
  }

  /** Opens the file, which the first use does otherwise. Throws Refusal if it cannot be used. */
  open(options: OpenOptions): OpenConnection {
    const { path, cacheKiB, fileId } = this.#settings;
    if (fileId !== undefined) refuseOtherFile(path, fileId);
    using opening = new DisposableStack();
    const database = opening.use(openDatabase(path, options));
    database.exec(`PRAGMA cache_size = -${cacheKiB}; PRAGMA busy_timeout = ${readLockTimeoutMs}`);
    const file = new OpenFile(database, path, fileId);
    this.#settings.fileId = file.id;
    this.#open = {
      ...openTables(database, this.#settings),
      database,
      file,
      checkSchema: openSchemaCheck(database, path),
      checkpoint: openCheckpoint(database),
      readDataVersion: prepare(database, 'PRAGMA data_version'),
      dataVersion: undefined,
      beginReads: database.prepare('BEGIN'),
      endReads: database.prepare('COMMIT'),
    };
    opening.move();
    return this.#open;
  }

  /** Call it regularly: reads rely on the last check, and a file that could not be reopened is tried again. */
  poll(): void {
    this.#openFailure = undefined;
    this.checkFile();
  }

  checkFile(): void {
    const fault = this.#findFault();
    if (fault === undefined || this.#fileFault !== undefined) return;
    this.#fileFault = fault;
    this.#settings.onFileLost?.(fault);
  }

  #findFault(): Refusal | undefined {
    const { path, fileId } = this.#settings;
    try {
      if (this.#open !== undefined) this.#open.file.check();
      else if (fileId !== undefined) refuseOtherFile(path, fileId);
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

  /** One attempt for each `poll`, because it blocks the event loop for up to `readLockTimeoutMs`. */
  #reopen(): OpenConnection {
    if (this.#openFailure !== undefined) throw this.#openFailure;
    try {
      return this.open({ create: false, deadlineMs: nowMs() + readLockTimeoutMs });
    } catch (error) {
      this.#openFailure = error;
      this.checkFile();
      throw error;
    }
  }

  /** Runs reads in the transaction of `beginReads`, or each statement in its own. */
  read<T>(work: (open: OpenConnection) => T): T {
    if (this.#fileFault !== undefined) throw storageUnavailable(this.#fileFault);
    try {
      return work(this.#open ?? this.#reopen());
    } catch (error) {
      throw this.#recoverFrom(error, 'before-commit');
    }
  }

  /**
   * Runs `work` in one transaction, and returns when its commit is on disk. Waits for locks of other processes
   * until `deadlineMs`, by nowMs().
   */
  write<T>(work: (tables: Tables) => T, deadlineMs: number): T {
    if (this.diskFailure !== undefined) throw storageUnavailable(this.diskFailure);
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
      if (isFailedSync(error, stage)) this.diskFailure = error;
      throw this.#recoverFrom(error, stage);
    }
  }

  /** Call it after writes. A failed sync is that of a commit: it becomes `diskFailure`. */
  checkpoint(): void {
    if (this.#open === undefined) return;
    try {
      this.#open.checkpoint();
    } catch (error) {
      if (isFailedSync(error, 'before-commit')) this.diskFailure = error;
      this.#recoverFrom(error, 'before-commit');
    }
  }

  close(): void {
    this.#open?.database.close();
    this.#open = undefined;
  }

  /** Rolls back, and closes the connection if it can be unusable. Returns what to throw for `error`. */
  #recoverFrom(error: unknown, stage: Stage): unknown {
    // If the file was moved or truncated, that explains more than SQLite's error.
    const cause = stage === 'commit' ? error : (this.#findFault() ?? error);
    const problem = problemOf(cause, stage);
    const { database } = this.#open ?? {};
    try {
      if (database?.isTransaction) database.exec('ROLLBACK');
      if (problem === cause || leavesConnectionUsable(cause)) return problem;
    } catch {
      // If the rollback fails, closing the connection ends its transaction.
    }
    // After an I/O error, the connection's page cache can differ from the disk.
    this.#open = undefined;
    database?.close();
    return problem;
  }

  /**
   * Call it at the start of a transaction. If another connection has written since the last one, drops what is cached.
   * Throws Refusal if the schema has become unusable.
   */
  #refresh(open: OpenConnection): void {
    const dataVersion = open.readDataVersion.get()?.[0];
    if (dataVersion === open.dataVersion) return;
    open.checkSchema();
    open.grants.refresh();
    open.counts.clear();
    open.dataVersion = dataVersion; // last, so that the next call checks again if a read fails
  }
}
