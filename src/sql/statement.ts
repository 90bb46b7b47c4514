/**
 * Statements as both engines run them, in the dialect of PostgreSQL. sqlite/dialect.ts translates them. Each names its
 * store in every table, so that a cluster runs it on one node.
 */
import { hash } from 'node:crypto';

/** Values in the column order of the statement: null, text, number, boolean or bytes. */
export type Row = readonly unknown[];

/** A statement that is prepared once for each connection, and the type of its rows. */
export interface Statement<R extends Row = Row> {
  name: string;
  text: string;
  /** Only for the compiler: it is never set. */
  row?: R;
}

/** A statement with the values of its parameters. */
export type Query<R extends Row = Row> = readonly [
  statement: Statement<R>,
  values: readonly unknown[],
];

/** PostgreSQL has names of up to 63 bytes. */
const digestChars = 16;

/** The name of a statement follows from its text, so that each name has one text. */
export function statementOf<R extends Row = Row>(text: string): Statement<R> {
  return { name: `s${hash('sha256', text).slice(0, digestChars)}`, text };
}

/** `R` must match the selected columns, because the compiler cannot check SQL. */
export function sql<R extends Row = Row>(
  parts: TemplateStringsArray,
  ...values: readonly (string | number)[]
): Statement<R> {
  return statementOf(String.raw(parts, ...values));
}
