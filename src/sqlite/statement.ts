import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';

type Values = SQLInputValue[] | [named: Record<string, SQLInputValue>];

/** A statement that is prepared, and the row that it yields: its columns in their order. */
export interface Statement<Row extends readonly unknown[] = []> {
  get(...values: Values): Row | undefined;
  all(...values: Values): Row[];
  run(...values: Values): ReturnType<StatementSync['run']>;
}

/** `Row` is what the STRICT columns of the statement hold. */
export function prepare<Row extends readonly unknown[] = []>(
  database: DatabaseSync,
  sql: string,
): Statement<Row> {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true); // an object for each row costs as much as reading it
  return statement as Pick<StatementSync, 'run'> as Statement<Row>; // SQL has no types for the compiler
}
