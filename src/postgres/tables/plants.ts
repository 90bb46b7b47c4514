/**
 * Reads plants in PostgreSQL.
 */
import { reaches, userKey, type ReadAccess } from '../../access/access.ts';
import type { UserStorage } from '../../access/user-storage.ts';
import { plantOf, textColumns, type PlantRow } from '../../plants/fields.ts';
import { maxId } from '../../plants/ids.ts';
import { isScan, listPlants, sourceOf } from '../../plants/lists.ts';
import type { OwnedPlant, PlantPage, PlantQuery } from '../../plants/plant-storage.ts';
import type { StepReader } from '../../plants/scans.ts';
import { sql, type Statement } from '../../sql/statement.ts';
import type { Servers } from '../servers.ts';

const plantColumns = `id, owner, ${textColumns}`;

export const findSql = sql<PlantRow>`
  SELECT ${plantColumns} FROM plant_store.plants
  WHERE store = $1 AND id = $2`;

export async function findPlant(
  servers: Servers,
  caller: ReadAccess,
  id: number,
): Promise<OwnedPlant | undefined> {
  const { store, read } = caller;
  const [row] = await servers.read(store, findSql, [store, id], userKey(caller));
  if (row === undefined) return undefined;
  const [, owner, ...texts] = row;
  return reaches(read, owner) ? plantOf(id, owner, texts) : undefined;
}

/** Plants of a step: it takes the server a few milliseconds, also for the maximum number of owners. */
const maxStepPlants = { store: 2_000, owner: 2_000, owners: 300 };

export function readPage(
  servers: Servers,
  users: UserStorage,
  caller: ReadAccess,
  query: PlantQuery,
): Promise<PlantPage> {
  const readerOf = isScan(query) ? scanReader : stepReader;
  return listPlants(caller, query, users, readerOf(servers, caller));
}

/** Reads the steps of a scan, which take turns with those of others. */
export function scanReader(servers: Servers, caller: ReadAccess): StepReader {
  const readStep = stepReader(servers, caller);
  const { scanSteps } = servers.placeOf(caller.store);
  return (...step) => scanSteps.run(userKey(caller), () => readStep(...step));
}

function stepReader(servers: Servers, caller: ReadAccess): StepReader {
  const { store, read } = caller;
  const source = sourceOf(read);
  const owners = read === 'all' ? [] : read;
  let more = 1;
  return async (after, limit, filter) => {
    const count = Math.min(limit, maxStepPlants[source]);
    // Enough if the owners have similar numbers of plants. While one owner has most, steps read more of each.
    const each = Math.min(count, more * (8 + Math.ceil((2 * count) / owners.length)));
    const reach = { store: [], owner: owners, owners: [owners, each] }[source];
    const statement = listSql[source][filter?.by ?? 'all'];
    const values = [store, after, count, ...reach, ...(filter?.values ?? [])];
    const rows = await servers.read(store, statement, values, userKey(caller));
    const [completeTo, nth, last] = rows.at(-1) ?? [];
    const readCount = nth ?? rows.length;
    more = readCount < count / 2 ? 2 * more : Math.max(1, more / 2);
    const isEnd = readCount < count && completeTo === null;
    const plants = rows.map(([, , id, owner, ...texts]) => plantOf(id, owner, texts));
    const leftOut = readCount - rows.length;
    return { rows: plants, scannedTo: isEnd ? undefined : last, leftOut };
  };
}

/**
 * The plants of an owner with ids above `after`, in ascending order. Only the index by owner can find and sort these
 * rows. For `owner = value ORDER BY id`, PostgreSQL can choose the primary key and read the whole store (decision 7).
 */
export const ownerRange = (owner: string, after: string) => `
  store = $1 AND (plants.owner, plants.id) > (${owner}, ${after})
    AND (plants.owner, plants.id) <= (${owner}, ${maxId})
  ORDER BY plants.owner, plants.id`;

/**
 * Return up to `$3` plants of all owners of the store, of one, or of several. The process makes the JSON, because in
 * PostgreSQL it takes half of the time of a page.
 */
export const listSql = {
  store: withFilters(nextSql('store = $1 AND id > $2 ORDER BY id'), 4),
  owner: withFilters(nextSql(ownerRange('$4', '$2')), 5),
  owners: withFilters(mergeSql(), 6),
};

/**
 * If plants were left out that can come next, the list is complete to this id. `nth` counts the plants that were read if
 * some of them were not sent.
 */
type StepRow = readonly [completeTo: number | null, nth: number | null, ...PlantRow];

function nextSql(range: string): string {
  return `
    SELECT NULL::bigint AS complete_to, NULL::bigint AS nth, ${plantColumns}
    FROM plant_store.plants WHERE ${range} LIMIT $3`;
}

/**
 * Merges the plants of several owners by id: only the `$3` owners whose next plants have the smallest ids can have one in
 * the result. Reads up to `$5` plants of each owner. If an owner can have more, the result ends there.
 */
function mergeSql(): string {
  return `
    SELECT complete_to, NULL::bigint AS nth, ${plantColumns}
    FROM (
      SELECT few.*, min(few.id) FILTER (WHERE few.nth = $5) OVER () AS complete_to
      FROM (
        SELECT reach.owner, next.id
        FROM unnest($4::bigint[]) AS reach (owner) CROSS JOIN LATERAL (
          SELECT id FROM plant_store.plants
          WHERE ${ownerRange('reach.owner', '$2')} LIMIT 1
        ) AS next
        ORDER BY next.id LIMIT $3
      ) AS nearest CROSS JOIN LATERAL (
        SELECT ${plantColumns}, row_number() OVER (ORDER BY plants.owner, id) AS nth
        FROM plant_store.plants
        WHERE ${ownerRange('nearest.owner', 'nearest.id - 1')} LIMIT $5
      ) AS few
    ) AS merged
    WHERE complete_to IS NULL OR id <= complete_to
    ORDER BY id LIMIT $3`;
}

/** The same list, and those among its plants that can pass a filter with parameters from this number on. */
function withFilters(all: string, first: number) {
  return {
    all: sql<StepRow>`${all}`,
    tag: candidates(all, `tag = $${first}`),
    text: candidates(all, canContain(`$${first}`)),
    name: candidates(
      all,
      `octet_length(name) > char_length(name)
        OR lower(name COLLATE "C") BETWEEN $${first} AND $${first + 1}`,
    ),
    none: candidates(all, 'false'),
  };
}

/** Most plants need not be sent. The last one that was read is, because the next step begins after it. */
function candidates(all: string, condition: string): Statement<StepRow> {
  return sql`
    SELECT complete_to, place, ${plantColumns}
    FROM (
      SELECT step.*, row_number() OVER () AS place, lead(id) OVER () IS NULL AS is_last
      FROM (${all}) AS step
    ) AS read
    WHERE is_last OR ${condition}`;
}

/**
 * Whether a plant can contain a folded text: folding changes only the case of ASCII, as `lower` with the collation "C"
 * does.
 */
function canContain(text: string): string {
  const contains = (column: string) => `position(${text} in lower(${column} COLLATE "C")) > 0`;
  return `(octet_length(name) + octet_length(tag) > char_length(name) + char_length(tag)
    OR ${contains('name')} OR ${contains('tag')})`;
}
