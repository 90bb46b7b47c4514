/**
 * The statements of a group of changes (store-changes.ts). Each names one store.
 */
import { maxId } from '../../plants/ids.ts';
import { prepared } from '../pool/connection.ts';
import { rangeOf } from '../tables/plant-statements.ts';

export type StoreRow = readonly [lastId: number, version: number, writer: string, grants: number];

const lock = `
  SELECT last_id, version, writer, grants FROM plant_store.stores
  WHERE store = $1 FOR UPDATE`;

export const changeSql = {
  // The row of the store is the lock that all groups of all replicas take.
  lock: prepared<StoreRow>('lock_store', lock),
  lockUnlessLocked: prepared<StoreRow>('lock_store_unless_locked', `${lock} SKIP LOCKED`),

  findOwners: prepared<readonly [id: number, owner: number]>(
    'find_owners',
    `
      SELECT id, owner FROM plant_store.plants
      WHERE store = $1 AND id = ANY ($2::bigint[])`,
  ),
  countPlantsOfUsers: prepared<readonly [owner: number, plants: number]>(
    'count_plants_of_users',
    `
      SELECT owners.owner, counted.plants
      FROM unnest($2::bigint[]) AS owners (owner) CROSS JOIN LATERAL (
        SELECT count(*) AS plants FROM (
          SELECT id FROM plant_store.plants
          WHERE ${rangeOf('owner', 'owners.owner', '0', String(maxId))} LIMIT $3
        ) AS limited
      ) AS counted`,
  ),
  countPlantsOfStore: prepared<readonly [plants: number]>(
    'count_plants_of_store',
    `
      SELECT count(*) FROM (
        SELECT id FROM plant_store.plants WHERE store = $1 LIMIT $2
      ) AS limited`,
  ),

  update: prepared(
    'update_store',
    'UPDATE plant_store.stores SET last_id = $2, version = $3, writer = $4 WHERE store = $1',
  ),
  delete: prepared(
    'delete_plants',
    'DELETE FROM plant_store.plants WHERE store = $1 AND id = ANY ($2::bigint[])',
  ),
  // Citus plans this at a quarter of the cost of INSERT ... SELECT (decision 15).
  create: prepared<readonly [id: number]>(
    'create_plants',
    `
      INSERT INTO plant_store.plants (store, id, owner, tag, name)
      VALUES ($1, unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::text[]), unnest($5::text[]))
      ON CONFLICT DO NOTHING
      RETURNING id`,
  ),
};
