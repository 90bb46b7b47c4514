import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { Refusal } from '../refusal.ts';
import { isLocked } from './errors.ts';
import { commitAfter, readPragma } from './driver.ts';

/** Marks the file as a journal: "PSij" in ASCII. */
const applicationId = 0x5053696a;

/**
 * A map from texts to JSON values in a file, for one process at a time. It survives the end of the process and of the
 * machine at any moment.
 */
export class Journal<Entry extends object> {
  readonly entries = new Map<string, Entry>();
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #unwritten = new Map<string, Entry>();
  #written: Promise<void> | undefined;

  /**
   * Creates the file if needed. Throws Refusal if another process has it open, if it is not for `owner`, or if an entry
   * is malformed.
   */
  constructor(path: string, owner: string, isEntry: (value: unknown) => value is Entry) {
    try {
      closeSync(openSync(path, 'a', 0o600)); // it contains plants, so only its owner can read it
      using opening = new DisposableStack();
      this.#database = opening.use(new DatabaseSync(path));
      createTables(this.#database, path);
      refuseOtherOwner(this.#database, path, owner);
      this.#insert = this.#database.prepare('INSERT OR REPLACE INTO entries VALUES (?, ?)');
      const rows = this.#database.prepare('SELECT key, entry FROM entries').iterate();
      for (const { key, entry } of rows) {
        const value: unknown = JSON.parse(String(entry));
        if (!isEntry(value)) throw new SyntaxError('an entry has another form');
        this.entries.set(String(key), value);
      }
      opening.move();
    } catch (error) {
      throw refusalFor(error, path);
    }
  }

  /** Resolves when the entry is on disk. Writes of one event loop iteration share a sync. */
  write(key: string, entry: Entry): Promise<void> {
    this.entries.set(key, entry);
    this.#unwritten.set(key, entry);
    this.#written ??= setImmediate().then(() => this.#flush());
    return this.#written;
  }

  [Symbol.dispose](): void {
    this.#flush();
    this.#database.close();
  }

  #flush(): void {
    this.#written = undefined;
    if (this.#unwritten.size === 0) return;
    this.#database.exec('BEGIN');
    commitAfter(this.#database, () => {
      for (const [key, entry] of this.#unwritten) this.#insert.run(key, JSON.stringify(entry));
    });
    this.#unwritten.clear();
  }
}

function createTables(database: DatabaseSync, path: string): void {
  // The exclusive lock ends with the process, also after kill -9.
  database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL');
  const isNew = readPragma(database, 'schema_version') === 0;
  if (!isNew && readPragma(database, 'application_id') !== applicationId) {
    throw new Refusal(`${path} is not the journal of an import. Choose another with --journal.`);
  }
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA application_id = ${applicationId};
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS owner (name TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, entry TEXT NOT NULL) WITHOUT ROWID;
    COMMIT`);
}

function refuseOtherOwner(database: DatabaseSync, path: string, owner: string): void {
  database.prepare('INSERT INTO owner SELECT ? WHERE NOT EXISTS (SELECT * FROM owner)').run(owner);
  const known = database.prepare('SELECT name FROM owner').get()?.['name'];
  if (known !== owner) {
    throw new Refusal(
      `${path} is the journal of an import to ${String(known)}, not to ${owner}. ` +
        'For the same store, use the same --url: with another --journal, all rows are added again.',
    );
  }
}

function refusalFor(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || error instanceof Refusal) return error;
  let reason = `The journal ${path} cannot be used: ${error.message}. Choose another with --journal.`;
  if (isLocked(error)) reason = `Another import uses ${path}. Wait until it ends.`;
  if (error instanceof SyntaxError) {
    reason =
      `The journal ${path} is damaged. Another journal would add all rows again: ` +
      'first find out which plants exist, then choose another with --journal.';
  }
  return new Refusal(reason, { cause: error });
}
