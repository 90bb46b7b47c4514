/**
 * The statements of a group (group.ts). Each names one store.
 */
import { textColumns, textFields } from '../../plants/fields.ts';
import { sql, statementOf } from '../../sql/statement.ts';
import { userSql } from '../../sql/users.ts';
import { ownerRange } from '../tables/plants.ts';

type StoreColumns = readonly [
  lastId: number,
  position: number,
  writer: string,
  grants: number,
  plants: number | null,
];

/** The row of a store, which all writes to it lock. */
export type StoreRow = ReturnType<typeof storeRowOf>;

export function storeRowOf([lastId, position, writer, grants, plants]: StoreColumns) {
  return { lastId, position, writer, grants, plants };
}

/** No grant has this version. */
export const noStore = storeRowOf([0, 0, '', -1, null]);

const lock = `
  SELECT last_id, position, writer, grants, plants FROM plant_store.stores
  WHERE store = $1 FOR UPDATE`;

const insert = `
    INSERT INTO plant_store.plants (store, id, owner, position, ${textColumns})
    VALUES ($1, unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::bigint[]),
      ${textFields.map((_, at) => `unnest($${at + 5}::text[])`).join()})
    ON CONFLICT (store, id) DO UPDATE SET`;

export const changeSql = {
  // The lock that all writes of all replicas to a store take.
  lock: statementOf<StoreColumns>(lock),
  lockUnlessLocked: sql<StoreColumns>`${lock} SKIP LOCKED`,

  findPlants: userSql.findPlants,
  findLargest: sql<readonly [id: number | null]>`
    SELECT max(id) FROM plant_store.plants WHERE store = $1`,
  countPlantsOfUsers: sql<readonly [owner: number, plants: number]>`
    SELECT owners.owner, counted.plants
    FROM unnest($2::bigint[]) AS owners (owner) CROSS JOIN LATERAL (
      SELECT count(*) AS plants FROM (
        SELECT id FROM plant_store.plants
        WHERE ${ownerRange('owners.owner', '0')} LIMIT $3
      ) AS limited
    ) AS counted`,
  countPlantsOfStore: sql<readonly [plants: number]>`
    SELECT count(*) FROM (
      SELECT id FROM plant_store.plants WHERE store = $1 LIMIT $2
    ) AS limited`,

  updateStore: sql`
    UPDATE plant_store.stores SET last_id = $2, position = $3, writer = $4, grants = $5, plants = $6
    WHERE store = $1`,
  findKeys: sql<readonly [user: number, key: string, fingerprint: string, plant: number]>`
    SELECT user_id, key_hash, fingerprint, plant
    FROM plant_store.idempotency_keys JOIN plant_store.users
      ON users.store = idempotency_keys.store AND users.id = user_id
    WHERE idempotency_keys.store = $1 AND users.store = $1 AND key_hash = ANY ($2::text[])
      AND at >= $3 AND position > removed_position`,
  addKeys: sql`
    INSERT INTO plant_store.idempotency_keys (store, key_hash, user_id, fingerprint, plant, position, at)
    VALUES ($1, unnest($2::text[]), unnest($3::bigint[]), unnest($4::text[]), unnest($5::bigint[]),
      unnest($6::bigint[]), $7)
    ON CONFLICT (store, key_hash, user_id)
    DO UPDATE SET fingerprint = excluded.fingerprint, plant = excluded.plant,
      position = excluded.position, at = excluded.at`,
  // A group adds fewer.
  removeOldKeys: sql`
    DELETE FROM plant_store.idempotency_keys WHERE store = $1 AND at <= (
      SELECT max(at) FROM (
        SELECT at FROM plant_store.idempotency_keys WHERE store = $1 AND at < $2 ORDER BY at LIMIT 1000
      ) AS oldest)`,
  delete: sql`DELETE FROM plant_store.plants WHERE store = $1 AND id = ANY ($2::bigint[])`,
  // Citus plans this at a quarter of the cost of INSERT ... SELECT (decision 15). If another program, which does not lock
  // the row of the store, has inserted an id meanwhile, NULL makes the transaction fail, and it is decided again.
  create: sql`${insert} name = NULL`,
  // The rows exist. This form is planned as fast as that of a create.
  update: sql`${insert} position = excluded.position, owner = excluded.owner,
      ${textFields.map((field) => `${field} = excluded.${field}`).join()}`,
};
