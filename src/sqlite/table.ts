import type { DatabaseSync } from 'node:sqlite';
import { prepare, type Statement } from './driver.ts';

/**
 * The statements of a table on one connection: fields of a class, so that the SQL, the type of its rows and its name are
 * in one place. The caller begins and ends transactions.
 */
export abstract class Table {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  protected prepare<Row extends readonly unknown[] = []>(sql: string): Statement<Row> {
    return prepare<Row>(this.#database, sql);
  }
}

/** A part of the storage (storage.ts) as a class on a connection: the same methods, without promises. */
export type Sync<Part> = {
  [Name in keyof Part]: Part[Name] extends (...args: infer Args) => Promise<infer Result>
    ? (...args: Args) => Result
    : never;
};
