/**
 * The check of a server that has stores: whether its schema can be used, and whether its commits are durable. On a
 * cluster, the node that has the store runs the statement, whichever node receives it.
 */
import { decodeSchema, type Schema } from '../../shared/migrations.ts';
import {
  refuseUnsafe,
  serverInfoColumns,
  type Connection,
  type ServerRow,
} from '../pool/connection.ts';
import { sql } from '../../sql/statement.ts';

type CheckRow = readonly [schema: number, stores: number, ...server: ServerRow];

const checkSql = (stores: string) => sql<CheckRow>`
  SELECT version, ${stores}, ${serverInfoColumns}
  FROM plant_store.migrations WHERE id = 1`;

/** Every node has the row of the migrations. */
const nodeSql = checkSql('0');
const storeSql = checkSql('(SELECT count(*) FROM plant_store.stores WHERE store = $1)');

/**
 * `store` is a number that a store on the node can have; undefined if it has none. Throws Refusal if the settings of the
 * node are not safe.
 */
export async function checkServer(
  connection: Connection,
  store: number | undefined,
): Promise<Schema> {
  const [row] =
    store === undefined
      ? await connection.query(nodeSql, [])
      : await connection.query(storeSql, [store]);
  const [schema, , ...server] = row ?? [0, 0];
  if (row !== undefined) refuseUnsafe(server);
  return decodeSchema(schema);
}
