import type { DatabaseSync } from 'node:sqlite';
import {
  copiedColumns,
  keyPartOf,
  type Archive,
  type Row,
  type Table,
  type Target,
} from '../copy/archive.ts';
import { changeKey, numberOfStore } from './dialect.ts';
import { prepare, readPragma } from './driver.ts';
import { refusalFor } from './errors.ts';
import { migrations, readSchema } from './file/migrate.ts';
import { openDatabase, type OpenOptions } from './file/open.ts';

/** Methods throw Refusal, which shows which of two databases failed. */
export class SqliteArchive implements Archive, Target {
  readonly #database: DatabaseSync;
  readonly #path: string;

  /** Throws Refusal if the file cannot be used or its schema is newer, because a copy would omit new columns. */
  constructor(path: string, options: OpenOptions) {
    using opening = new DisposableStack();
    this.#path = path;
    this.#database = opening.use(openDatabase(path, options));
    const schema = readSchema(this.#database);
    migrations.refuseNewer(schema, path);
    migrations.refuseOlder(schema, path);
    opening.move();
  }

  async count(table: Table): Promise<number> {
    const sql = `SELECT count(*) FROM ${table}`;
    return this.#try(() => prepare<[number]>(this.#database, sql).get()?.[0] ?? 0);
  }

  async read(table: Table, after: Row | undefined, limit: number): Promise<Row[]> {
    const key = keyPartOf(table, copiedColumns[table]);
    // Stores are added in the order of their numbers, so that the changes are in the order of their keys.
    const [order, start] =
      table === 'changes' ? ['key', keyOfChange] : [key.join(), parametersOf(key)];
    const range = after === undefined ? '' : `WHERE (${order}) > (${start})`;
    const sql = `SELECT ${copiedColumns[table].join()} FROM ${table} ${range} ORDER BY ${order} LIMIT ?`;
    return this.#try(() => prepare<Row>(this.#database, sql).all(...(after ?? []), limit));
  }

  async add(table: Table, rows: readonly Row[]): Promise<void> {
    this.#try(() => insertRows(this.#database, table, rows));
  }

  /** Every commit of another connection changes data_version. */
  async version(): Promise<string> {
    return String(readPragma(this.#database, 'data_version'));
  }

  async snapshot<T>(work: (source: Pick<Target, 'read'>) => Promise<T>): Promise<T> {
    this.#try(() => this.#database.exec('BEGIN'));
    const result = await work(this);
    this.#try(() => this.#database.exec('ROLLBACK'));
    return result;
  }

  /** Not in WAL mode, because the WAL would become as large as the database. Disposing the archive rolls back. */
  async fill<T>(work: (target: Target) => Promise<T>): Promise<T> {
    this.#try(() => this.#database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE'));
    const result = await work(this);
    this.#try(() => this.#database.exec('COMMIT'));
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#database.close();
  }

  #try<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw refusalFor(error, this.#path);
    }
  }
}

const keyOfChange = changeKey(numberOfStore, '?2');

function parametersOf(columns: readonly string[]): string {
  return columns.map((_, at) => `?${at + 1}`).join();
}

export function insertRows(database: DatabaseSync, table: Table, rows: readonly Row[]): void {
  const columns = copiedColumns[table];
  const [into, values] = [columns.join(), parametersOf(columns)];
  const insert = prepare(
    database,
    table === 'changes'
      ? `INSERT INTO changes (${into}, key) VALUES (${values}, ${keyOfChange})`
      : `INSERT INTO ${table} (${into}) VALUES (${values})`,
  );
  for (const row of rows) insert.run(...row);
}
