/**
 * The check of a server: whether its schema can be used, and whether its commits are durable.
 */
import { decodeSchema, type Schema } from '../../shared/migrations.ts';
import {
  sql,
  refuseUnsafe,
  serverInfoColumns,
  type Connection,
  type ServerRow,
  type Statement,
} from '../pool/connection.ts';

type CheckRow = readonly [
  schema: number,
  isUnfinishedCopy: boolean,
  stores: number,
  ...server: ServerRow,
];

const checkSql = (stores: string) => sql<CheckRow>`
  SELECT version, copy_of IS NOT NULL, ${stores}, ${serverInfoColumns}
  FROM plant_store.migrations WHERE id = 1`;

/** Also reads a table that requests read, because it can be locked. */
export const checkServerSql = checkSql('(SELECT count(*) FROM plant_store.stores WHERE store = 0)');
/** Every node has the row of the migrations. A store can be on another node, which can be down. */
export const checkNodeSql = checkSql('0');

export interface ServerState {
  schema: Schema;
  isUnfinishedCopy: boolean;
}

/** Throws Refusal if the settings of the server are not safe. */
export async function checkServer(
  connection: Connection,
  statement: Statement<CheckRow>,
): Promise<ServerState> {
  const [row] = await connection.query(statement, []);
  const [schema, isUnfinishedCopy, , ...server] = row ?? [0, false, 0];
  if (row !== undefined) refuseUnsafe(server);
  return { schema: decodeSchema(schema), isUnfinishedCopy };
}
