/**
 * The check of a server: whether its schema can be used, and whether its commits are durable.
 */
import { Refusal } from '../../refusal.ts';
import { decodeSchema, type Schema } from '../../shared/migrations.ts';
import { sql, type Statement } from '../../sql/statement.ts';
import { WrongServer } from '../errors.ts';
import type { Connection } from '../pool/connection.ts';

/** Settings that must not be off, or acknowledged changes can be lost. */
const durabilitySettings = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

export type ServerRow = readonly (string | null)[];
type CheckRow = readonly [schema: number, stores: number, ...server: ServerRow];

export function settings(names: readonly string[]): string {
  return names.map((name) => `current_setting('${name}', true)`).join();
}

export const serverInfoColumns = `
  version(), current_setting('transaction_read_only'), current_setting('server_encoding', true),
  ${settings(durabilitySettings)}`;

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

/**
 * Throws WrongServer if the server accepts no writes, and Refusal if changes or text could be lost. Engines without
 * a setting have no way to switch it off.
 */
export function refuseUnsafe([, readOnly, encoding = null, ...durability]: ServerRow): void {
  if (readOnly === 'on') throw new WrongServer('the server is read-only'); // a standby, for example
  const refusalOf = (setting: string, value: string, wanted: string) =>
    new Refusal(
      `The database server runs with ${setting} = ${value}, but Plant Store needs ${wanted}.`,
    );
  if (encoding !== 'UTF8' && encoding !== null) {
    throw refusalOf('server_encoding', encoding, 'UTF8, so that it can store any name');
  }
  for (const [at, setting] of durabilitySettings.entries()) {
    if (durability[at] === 'off') {
      throw refusalOf(setting, 'off', 'on, so that acknowledged changes survive a crash');
    }
  }
}

/** False for other engines with the same protocol: their planners have other settings. */
export function isPostgres([version]: ServerRow): boolean {
  return /^PostgreSQL (?!.*-YB-)/.test(version ?? '');
}
