/**
 * Plants in PostgreSQL: the statements, and what they are run with. Changes to plants are made in groups
 * (writer.ts).
 */
import { soleOwner, type ReadAccess } from '../access.ts';
import { idMax } from '../ids.ts';
import type { ListKind, PlantRow } from '../lists.ts';
import type { PlantQuery } from '../plant-storage.ts';
import { prepared, type Statement } from './connection.ts';

// The columns of an index in their order, so that a list is a range of it.
const ranges = {
  store: 'store = $1',
  storeTag: 'store = $1 AND tag = $5',
  owner: 'store = $1 AND owner = $5',
};
type RangeKind = keyof typeof ranges;

/**
 * A page, and one plant more where others follow. The JSON is made here and not there: for PostgreSQL
 * it would be half of what a page costs.
 */
export const listSql: Record<RangeKind | 'owners', Statement<PlantRow>> = {
  store: rangeSql('store'),
  storeTag: rangeSql('storeTag'),
  owner: rangeSql('owner'),
  // The page is among the first of each owner.
  owners: prepared(
    'list_owners',
    `
      SELECT firsts.id, firsts.name, firsts.tag
      FROM unnest($5::bigint[]) AS reach (owner) CROSS JOIN LATERAL (
        SELECT id, name, tag FROM plant_store.plants
        WHERE store = $1 AND plants.owner = reach.owner AND id > $2 AND id <= $3
        ORDER BY id LIMIT $4::bigint + 1
      ) AS firsts
      ORDER BY id LIMIT $4::bigint + 1`,
  ),
};

function rangeSql(kind: RangeKind): Statement<PlantRow> {
  return prepared(
    `list_${kind}`,
    `
      SELECT id, name, tag FROM plant_store.plants
      WHERE ${ranges[kind]} AND id > $2 AND id <= $3 ORDER BY id LIMIT $4::bigint + 1`,
  );
}

/** Plants that a step of a walk takes: some milliseconds of the server. */
const stepPlants = 10_000;

/**
 * Where a step over the plants of one owner ends, and over those of several: none of them has more in it
 * than their share of a step.
 */
export const endOfStepSql = {
  owner: prepared<readonly [id: number]>(
    'end_of_step',
    `
      SELECT id FROM plant_store.plants
      WHERE store = $1 AND owner = $2 AND id > $3 AND id <= $4
      ORDER BY id LIMIT 1 OFFSET ${stepPlants - 1}`,
  ),
  owners: prepared<readonly [id: number | null]>(
    'end_of_step_of_owners',
    `
      SELECT min(share.id)
      FROM unnest($2::bigint[]) AS reach (owner) CROSS JOIN LATERAL (
        SELECT id FROM plant_store.plants
        WHERE store = $1 AND plants.owner = reach.owner AND id > $3 AND id <= $4
        ORDER BY id LIMIT 1 OFFSET ${stepPlants} / greatest(cardinality($2::bigint[]), 1)
      ) AS share`,
  ),
};

/**
 * The plants of a step with a tag, which no index has (decision 7). The inner LIMIT, which a step never
 * exceeds, keeps PostgreSQL from another plan: the index by tag is a walk over the plants of all owners.
 */
export const stepSql: Record<'owner' | 'owners', Statement<PlantRow>> = {
  owner: prepared(
    'step',
    `
      SELECT id, name, tag FROM (
        SELECT id, name, tag FROM plant_store.plants
        WHERE store = $1 AND owner = $5 AND id > $2 AND id <= $3 ORDER BY id LIMIT ${stepPlants}
      ) AS scanned
      WHERE tag = $6 ORDER BY id LIMIT $4::bigint + 1`,
  ),
  owners: prepared(
    'step_of_owners',
    `
      SELECT scanned.id, scanned.name, scanned.tag
      FROM unnest($5::bigint[]) AS reach (owner) CROSS JOIN LATERAL (
        SELECT id, name, tag FROM plant_store.plants
        WHERE store = $1 AND plants.owner = reach.owner AND id > $2 AND id <= $3
        ORDER BY id LIMIT ${stepPlants}
      ) AS scanned
      WHERE scanned.tag = $6 ORDER BY id LIMIT $4::bigint + 1`,
  ),
};

/** One plant is found by its key. */
export const findSql = prepared<readonly [name: string, tag: string, owner: number]>(
  'find',
  `
    SELECT name, tag, owner FROM plant_store.plants
    WHERE store = $1 AND id = $2`,
);

/** What a list of this kind is read with. */
export function listValues(
  kind: Exclude<ListKind, 'scan'>,
  { store, read }: ReadAccess,
  { after, upTo = idMax, limit, tag }: PlantQuery,
): readonly unknown[] {
  const range = [store, after, upTo, limit];
  if (kind === 'store') return range;
  return [...range, kind === 'storeTag' ? tag : (soleOwner(read) ?? read)];
}
