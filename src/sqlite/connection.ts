/**
 * A connection to the file that mends itself: after an error that leaves it in doubt it is closed,
 * and the next use opens another. Each thread has its own.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { storageUnavailable } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { begin } from './begin.ts';
import { openDatabase, walBytesKept, type OpenOptions } from './database.ts';
import {
  isFailedSync,
  isSqliteError,
  leavesConnectionSound,
  problemOf,
  type Stage,
} from './errors.ts';
import { SchemaCheck } from './migrate.ts';
import { OpenFile, refuseOther, type FileId } from './open-file.ts';
import { Plants } from './plants.ts';
import { Stores } from './stores.ts';
import { Tokens } from './tokens.ts';
import { Freshness } from './freshness.ts';
import { nowMs } from './writes.ts';

export interface Tables {
  plants: Plants;
  tokens: Tokens;
}

/** A connection that is open, and what runs on it. */
export interface Open extends Tables {
  database: DatabaseSync;
  file: OpenFile;
  schema: SchemaCheck;
  stores: Stores;
  freshness: Freshness;
  beginReads: StatementSync;
  endReads: StatementSync;
}

/** Reads run on the event loop, so they hardly wait for a lock; in WAL mode they hardly ever have to. */
const readLockMs = 20;
/** Until a file that could not be opened is tried again: trying takes some milliseconds. */
const reopenMs = 250;
/** How far the WAL grows beyond what is kept of it before readers are waited for, and how long. */
const restartWalBytes = 16 * 1024 * 1024;
const restartWalMs = 100;

export class Connection {
  readonly #path: string;
  readonly #cacheKiB: number;
  /** The file that it opens, and no other; that of its first opening if it was told none. */
  #fileId: FileId | undefined;
  #open: Open | undefined;
  #diskFailure: unknown;
  #restartWalAt = walBytesKept + restartWalBytes;
  #refusal: { problem: unknown; untilMs: number } | undefined;

  /** `cacheKiB` is what it may keep of the file in memory; it takes no more than it reads. */
  constructor(path: string, cacheKiB: number, fileId?: FileId) {
    this.#path = path;
    this.#cacheKiB = cacheKiB;
    this.#fileId = fileId;
  }

  /** Opens the file now and not with the first use. Throws Refusal where it cannot be used. */
  open(options: OpenOptions): FileId {
    this.#open = this.#openWith(options);
    return this.#open.file.id;
  }

  /** Why nothing can be read from the file or written to it; undefined if there is no reason. */
  fault(): Refusal | undefined {
    try {
      this.#open?.file.check();
      this.#open?.schema.check();
      if (this.#open === undefined && this.#fileId !== undefined)
        refuseOther(this.#path, this.#fileId);
      return undefined;
    } catch (error) {
      if (error instanceof Refusal) return error;
      if (isSqliteError(error)) return undefined; // what reads or writes next gets it too
      throw error;
    }
  }

  /** Until `endReads`, all reads see the same; without it, each statement sees what there is by then. */
  beginReads(): void {
    this.read(({ beginReads }) => beginReads.run());
  }

  endReads(): void {
    // After an error there is no transaction any more.
    if (this.#open?.database.isTransaction !== true) return;
    try {
      this.read(({ endReads }) => endReads.run());
    } catch {
      // It is over all the same: the connection has been closed, and the next read opens another.
    }
  }

  /** Runs reads, in the transaction that is open or each in its own. */
  read<T>(work: (open: Open) => T): T {
    try {
      return work(this.#opened(readLockMs));
    } catch (error) {
      throw this.#failed(error, 'before-commit');
    }
  }

  /** The error after which nothing is written any more, if there was one. */
  get diskFailure(): unknown {
    return this.#diskFailure;
  }

  /**
   * Runs `work` in one transaction; when this returns, its commit is on disk. Waits for the lock of
   * other processes until `untilMs` of nowMs().
   */
  write<T>(work: (tables: Tables) => T, untilMs: number): T {
    if (this.#diskFailure !== undefined) throw storageUnavailable(this.#diskFailure);
    let stage: Stage = 'before-commit';
    try {
      const opened = this.#opened(Math.max(0, Math.ceil(untilMs - nowMs())));
      begin(opened.database, untilMs);
      opened.schema.check(); // with the lock held, so no newer program can change it meanwhile
      opened.stores.begin();
      const result = work(opened);
      opened.stores.write();
      opened.file.check();
      stage = 'commit';
      opened.database.exec('COMMIT');
      opened.file.check(); // a change that went with a file that is gone is not acknowledged
      return result;
    } catch (error) {
      if (isFailedSync(error, stage)) this.#diskFailure = error;
      throw this.#failed(error, stage);
    }
  }

  /**
   * SQLite begins the WAL anew only at a moment without readers. Where many processes read all the time
   * there may be none, so this waits for those that are reading now: the others read the file itself.
   */
  restartWal(): void {
    if (this.#open === undefined || this.#open.file.walBytes < this.#restartWalAt) return;
    try {
      const { database, file } = this.#open;
      database.exec(`PRAGMA busy_timeout = ${restartWalMs}`);
      const row = database.prepare('PRAGMA wal_checkpoint(RESTART)').get();
      // A reader that hangs must not delay each commit.
      const keptBytes = row?.['busy'] === 0 ? walBytesKept : file.walBytes;
      this.#restartWalAt = keptBytes + restartWalBytes;
    } catch (error) {
      this.#failed(error, 'before-commit');
    }
  }

  /** Another connection of this process has written, which the next read must see. */
  changed(): void {
    this.#open?.freshness.changed();
  }

  close(): void {
    this.#open?.database.close();
    this.#open = undefined;
  }

  #opened(lockMs: number): Open {
    if (this.#open !== undefined) return this.#open;
    if (this.#refusal !== undefined && nowMs() < this.#refusal.untilMs) throw this.#refusal.problem;
    try {
      this.#open = this.#openWith({ create: false, lockMs });
      return this.#open;
    } catch (error) {
      const problem = problemOf(error, 'before-commit');
      this.#refusal = { problem, untilMs: nowMs() + reopenMs };
      throw problem;
    }
  }

  #openWith(options: OpenOptions): Open {
    if (this.#fileId !== undefined) refuseOther(this.#path, this.#fileId);
    const database = openDatabase(this.#path, options);
    try {
      database.exec(`PRAGMA cache_size = -${this.#cacheKiB}`);
      database.exec(`PRAGMA busy_timeout = ${readLockMs}`);
      const file = new OpenFile(database, this.#path);
      this.#fileId ??= file.id;
      refuseOther(this.#path, this.#fileId);
      const stores = new Stores(database);
      const schema = new SchemaCheck(database, this.#path);
      return {
        database,
        file,
        stores,
        plants: new Plants(database, stores),
        tokens: new Tokens(database),
        schema,
        freshness: new Freshness(database, stores, schema),
        beginReads: database.prepare('BEGIN'),
        endReads: database.prepare('COMMIT'),
      };
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** What to throw for `error`, once the connection is sound again or gone. */
  #failed(error: unknown, stage: Stage): unknown {
    // What SQLite finds in a file that is not whole says less than that it is not.
    const cause = stage === 'commit' ? error : (this.fault() ?? error);
    const problem = problemOf(cause, stage);
    const { database } = this.#open ?? {};
    try {
      if (database?.isTransaction) database.exec('ROLLBACK');
      if (problem === cause || leavesConnectionSound(cause)) return problem;
    } catch {
      // A connection that cannot roll back is dropped; closing it ends its transaction.
    }
    // After an I/O error, what the connection holds in memory may differ from what is on disk.
    this.#open = undefined;
    database?.close();
    return problem;
  }
}
