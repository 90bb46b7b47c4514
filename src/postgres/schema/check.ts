/**
 * The check of a server: whether its schema can be used, and whether its commits are durable.
 */
import { Refusal } from '../../refusal.ts';
import { decodeSchema, type Schema } from '../../shared/migrations.ts';
import { sql, type Statement } from '../../sql/statement.ts';
import { WrongServer } from '../errors.ts';
import type { Connection } from '../pool/connection.ts';

const isOn = /^(?!off$)/; // `synchronous_commit` has several values
const durable =
  'on, so that acknowledged changes survive a crash. Use ALTER SYSTEM SET, and reload the server';

/** What settings need to be, so that no change and no text is lost. Other engines do not have all of them. */
const needed = [
  ['server_encoding', /^UTF8$/, 'UTF8, so that it can store any name'],
  ['fsync', isOn, durable],
  ['full_page_writes', isOn, durable],
  ['synchronous_commit', isOn, durable],
] as const;

export type ServerRow = readonly (string | null)[];
type CheckRow = readonly [schema: number, stores: number, ...server: ServerRow];

export function settings(names: readonly string[]): string {
  return names.map((name) => `current_setting('${name}', true)`).join();
}

export const serverInfoColumns = `
  version(), current_setting('transaction_read_only'), ${settings(needed.map(([name]) => name))}`;

const checkSql = (stores: string) => sql<CheckRow>`
  SELECT version, ${stores}, ${serverInfoColumns}
  FROM plant_store.migrations WHERE id = 1`;

/** Also reads a table that requests read, because it can be locked. */
export const checkServerSql = checkSql('(SELECT count(*) FROM plant_store.stores WHERE store = 0)');
/** Every node has the row of the migrations. A store can be on another node, which can be down. */
export const checkNodeSql = checkSql('0');

/** Throws Refusal if the settings of the server are not safe. */
export async function checkServer(
  connection: Connection,
  statement: Statement<CheckRow>,
): Promise<Schema> {
  const [row] = await connection.query(statement, []);
  const [schema, , ...server] = row ?? [0, 0];
  if (row !== undefined) refuseUnsafe(server);
  return decodeSchema(schema);
}

/** Throws WrongServer if the server accepts no writes, and Refusal if changes or text could be lost. */
export function refuseUnsafe([, readOnly, ...values]: ServerRow): void {
  if (readOnly === 'on') throw new WrongServer('the server is read-only'); // a standby, for example
  for (const [at, [setting, isSafe, wanted]] of needed.entries()) {
    const value = values[at] ?? null;
    if (value === null || isSafe.test(value)) continue;
    throw new Refusal(
      `The database server runs with ${setting} = ${value}, but Plant Store needs ${wanted}.`,
    );
  }
}

/** False for other engines with the same protocol: their planners have other settings. */
export function isPostgres([version]: ServerRow): boolean {
  return /^PostgreSQL (?!.*-YB-)/.test(version ?? '');
}
