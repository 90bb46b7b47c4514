/**
 * Statements of node:sqlite, with typed rows.
 */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';

type Values = SQLInputValue[] | [named: Record<string, SQLInputValue>];

/** A prepared statement that returns rows as tuples of their columns. */
export interface Statement<Row extends readonly unknown[] = []> {
  get(...values: Values): Row | undefined;
  all(...values: Values): Row[];
  run(...values: Values): void;
}

/** `Row` must match the selected columns, because the compiler cannot check SQL. */
export function prepare<Row extends readonly unknown[] = []>(
  database: DatabaseSync,
  sql: string,
): Statement<Row> {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true); // building an object for each row costs as much as reading it
  // StatementSync.run() returns the last rowid of the connection, and throws if a number cannot represent it.
  const run: Statement['run'] = (...values) => void statement.get(...(values as SQLInputValue[])); // either form
  return Object.assign(statement, { run }) as unknown as Statement<Row>; // the caller asserts the type
}

/** Prepares statements on one connection. */
export type Prepare = ReturnType<typeof preparerOf>;

export function preparerOf(database: DatabaseSync) {
  return <Row extends readonly unknown[] = []>(sql: string) => prepare<Row>(database, sql);
}

/** The value of a pragma (sqlite.org/pragma.html). */
export function readPragma(database: DatabaseSync, name: string): unknown {
  return prepare<[unknown]>(database, `PRAGMA ${name}`).get()?.[0];
}

/** Commits the open transaction after `work`, or rolls it back if that throws. */
export function commitAfter(database: DatabaseSync, work: () => void): void {
  try {
    work();
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
