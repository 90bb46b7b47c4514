/**
 * The check of a server: whether its schema can be used, and whether its commits are durable.
 */
import { decodeSchema, type Schema } from '../../shared/migrations.ts';
import {
  refuseUnsafe,
  serverInfoColumns,
  type Connection,
  type ServerRow,
} from '../pool/connection.ts';
import { sql, type Statement } from '../../sql/statement.ts';

type CheckRow = readonly [schema: number, stores: number, ...server: ServerRow];

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
