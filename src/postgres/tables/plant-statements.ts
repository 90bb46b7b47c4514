/**
 * The statements that read plants, and their parameters. Changes to plants are made in groups (writer.ts).
 */
import { soleOwner, type ReadAccess } from '../../access/access.ts';
import { maxId } from '../../plants/ids.ts';
import type { PlantRow } from '../../plants/lists.ts';
import type { PlantQuery } from '../../plants/plant-storage.ts';
import { sql, type Statement } from '../../sql/statement.ts';

/**
 * The plants of an owner with ids above `after` and up to `upTo`, in ascending order. Only the index by owner can find and
 * sort these rows. For `owner = value ORDER BY id`, PostgreSQL can choose the primary key and read the whole store
 * (decision 7).
 */
export const ownerRange = (owner: string, after: string, upTo: string) => `
  store = $1 AND (plants.owner, plants.id) > (${owner}, ${after})
    AND (plants.owner, plants.id) <= (${owner}, ${upTo})
  ORDER BY plants.owner, plants.id`;

/**
 * Return a page, and one plant more if others follow. The process makes the JSON, because in PostgreSQL it takes
 * half of the time of a page.
 */
export const listSql = {
  store: pageSql('store = $1 AND id > $2 AND id <= $3 ORDER BY id'),
  owner: pageSql(ownerRange('$5', '$2', '$3')),
};
type RangeKind = keyof typeof listSql;

function pageSql(range: string): Statement<PlantRow> {
  return sql`SELECT id, name, tag, owner FROM plant_store.plants WHERE ${range} LIMIT $4::bigint + 1`;
}

type MergedRow = readonly [...PlantRow, completeTo: number | null];

/** Plants of the store among which a step searches: it takes the server a millisecond or two. */
export const maxScannedPlants = 2_000;

type SearchedRow = readonly [...PlantRow, isFound: boolean, nth: number];

/**
 * Returns up to `$3` plants for which the condition holds among the next ones of the store, and the last one that it
 * searched.
 */
function searchFor(condition: string): Statement<SearchedRow> {
  return sql`
  SELECT id, name, tag, owner, is_found, nth
  FROM (
    SELECT id, name, tag, owner, ${condition} AS is_found, row_number() OVER (ORDER BY id) AS nth
    FROM plant_store.plants
    WHERE store = $1 AND id > $2 ORDER BY id LIMIT ${maxScannedPlants}
  ) AS searched
  WHERE is_found OR nth = ${maxScannedPlants} LIMIT $3`;
}

export const searchSql = {
  owners: searchFor('owner IN (SELECT unnest($4::bigint[]))'),
  tag: searchFor('tag = $4'),
  text: searchFor(canContain('$4')),
};

/**
 * Whether a plant can contain a folded text: folding changes only the case of ASCII, as `lower` with the collation "C"
 * does.
 */
function canContain(text: string): string {
  const contains = (column: string) => `position(${text} in lower(${column} COLLATE "C")) > 0`;
  return `(octet_length(name) + octet_length(tag) > char_length(name) + char_length(tag)
    OR ${contains('name')} OR ${contains('tag')})`;
}

/**
 * Merges the plants of several owners by id, up to `$4`: only the `$4` owners whose next plants have the smallest ids
 * can have one in the result. Reads up to `$6` plants of each owner. The result is complete up to the id in its last
 * column, or everywhere if that is null.
 */
export const mergeSql = sql<MergedRow>`
  SELECT plants.id, plants.name, plants.tag, plants.owner, merged.complete_to
  FROM (
    SELECT ids.id, min(ids.id) FILTER (WHERE ids.nth = $6) OVER () AS complete_to
    FROM (
      SELECT reach.owner, next.id
      FROM unnest($5::bigint[]) AS reach (owner) CROSS JOIN LATERAL (
        SELECT id FROM plant_store.plants
        WHERE ${ownerRange('reach.owner', '$2', '$3')} LIMIT 1
      ) AS next
      ORDER BY next.id LIMIT $4
    ) AS nearest CROSS JOIN LATERAL (
      SELECT id, row_number() OVER (ORDER BY plants.owner, id) AS nth FROM plant_store.plants
      WHERE ${ownerRange('nearest.owner', 'nearest.id - 1', '$3')} LIMIT $6
    ) AS ids
    ORDER BY ids.id LIMIT $4
  ) AS merged JOIN plant_store.plants ON plants.store = $1 AND plants.id = merged.id
  ORDER BY merged.id`;

/** Plants in a step of a scan: a step takes the server a few milliseconds. */
export const scanStepPlants = 10_000;

/** Returns the last id of a step, if others follow. A step has at most an equal share of each owner's plants. */
export const scanStepEndSql = sql<readonly [id: number | null]>`
  SELECT min(share.id)
  FROM unnest($2::bigint[]) AS reach (owner) CROSS JOIN LATERAL (
    SELECT id FROM plant_store.plants
    WHERE ${ownerRange('reach.owner', '$3', '$4')}
    LIMIT 1 OFFSET ${scanStepPlants} / greatest(cardinality($2::bigint[]), 1)
  ) AS share`;

/**
 * Returns up to `$4` plants of a step that have a tag or can contain a folded text, which no index covers (decisions 7
 * and 40). A step never exceeds the inner LIMIT, but without it PostgreSQL could read the plants of all owners.
 */
const scanStepFor = (condition: string) => sql<PlantRow>`
  SELECT scanned.id, scanned.name, scanned.tag, scanned.owner
  FROM unnest($5::bigint[]) AS reach (owner) CROSS JOIN LATERAL (
    SELECT id, name, tag, owner FROM plant_store.plants
    WHERE ${ownerRange('reach.owner', '$2', '$3')} LIMIT ${scanStepPlants + 1}
  ) AS scanned
  WHERE ${condition} ORDER BY id LIMIT $4`;

export const scanStepSql = {
  tag: scanStepFor('scanned.tag = $6'),
  text: scanStepFor(canContain('$6')),
};

export const findSql = sql<readonly [name: string, tag: string, owner: number]>`
  SELECT name, tag, owner FROM plant_store.plants
  WHERE store = $1 AND id = $2`;

/** The parameters of `listSql`. */
export function listValues(
  kind: RangeKind,
  { store, read }: ReadAccess,
  { after, limit }: PlantQuery,
): readonly unknown[] {
  const range = [store, after, maxId, limit];
  return kind === 'store' ? range : [...range, soleOwner(read)];
}
