import type { DatabaseSync } from 'node:sqlite';
import { copiedColumns, keyPartOf, type Archive, type Row, type Table } from '../copy/archive.ts';
import { openCheckpoint } from './file/checkpoint.ts';
import { openDatabase, type OpenOptions } from './file/open.ts';
import { migrations, readSchema } from './file/migrate.ts';
import { isUnfinished, unfinishedCopyTable } from './file/schema.ts';
import { commitAfter, prepare } from './driver.ts';

export class SqliteArchive implements Archive {
  readonly #database: DatabaseSync;
  readonly #checkpoint: () => void;

  /** Throws Refusal if the file cannot be used or its schema is newer, because a copy would omit new columns. */
  constructor(path: string, options: OpenOptions) {
    using opening = new DisposableStack();
    this.#database = opening.use(openDatabase(path, options));
    migrations.refuseNewer(readSchema(this.#database), path);
    this.#checkpoint = openCheckpoint(this.#database);
    opening.move();
  }

  async count(table: Table): Promise<number> {
    return Number(this.#firstRow(`SELECT count(*) FROM ${table}`)?.[0]);
  }

  async read(table: Table, after: Row | undefined, limit: number): Promise<Row[]> {
    const key = keyPartOf(table, copiedColumns[table]);
    const range =
      after === undefined ? '' : `WHERE (${key.join()}) > (${key.map(() => '?').join()})`;
    const statement = prepare<Row>(
      this.#database,
      `SELECT ${copiedColumns[table].join()} FROM ${table} ${range} ORDER BY ${key.join()} LIMIT ?`,
    );
    return statement.all(...(after ?? []), limit);
  }

  async add(table: Table, rows: readonly Row[]): Promise<void> {
    const parameters = copiedColumns[table].map(() => '?').join();
    const insert = this.#database.prepare(
      `INSERT INTO ${table} (${copiedColumns[table].join()}) VALUES (${parameters}) ON CONFLICT DO NOTHING`,
    );
    this.#database.exec('BEGIN IMMEDIATE');
    commitAfter(this.#database, () => {
      for (const row of rows) insert.run(...row);
    });
    this.#checkpoint();
  }

  async lastKey(table: Table): Promise<Row | undefined> {
    const key = keyPartOf(table, copiedColumns[table]);
    const descending = key.map((column) => `${column} DESC`).join();
    return this.#firstRow(`SELECT ${key.join()} FROM ${table} ORDER BY ${descending} LIMIT 1`);
  }

  /** Every commit of another connection changes data_version. */
  async version(): Promise<string> {
    return String(this.#firstRow('PRAGMA data_version')?.[0]);
  }

  async unfinishedSource(): Promise<string | undefined> {
    if (!isUnfinished(this.#database)) return undefined;
    return String(this.#firstRow('SELECT source FROM unfinished_copy')?.[0]);
  }

  async beginCopy(source: string): Promise<void> {
    this.#database.exec('BEGIN IMMEDIATE');
    commitAfter(this.#database, () => {
      this.#database.exec(unfinishedCopyTable);
      this.#database.prepare('INSERT INTO unfinished_copy VALUES (?)').run(source);
    });
  }

  async finishCopy(): Promise<void> {
    this.#database.exec('DROP TABLE unfinished_copy');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#database.close();
  }

  #firstRow(sql: string): Row | undefined {
    return prepare<Row>(this.#database, sql).get();
  }
}
