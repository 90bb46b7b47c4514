/**
 * Lists of plants in SQLite. Each read takes less than 2 ms, however long the list.
 */
import { accessTo, type Reach, type ReadAccess, type ShareAccess } from '../../access/access.ts';
import { eachText, plantOf, textColumns, type PlantRow } from '../../plants/fields.ts';
import { maxId } from '../../plants/ids.ts';
import { sourceOf } from '../../plants/lists.ts';
import type { PlantField } from '../../plants/plant.ts';
import type { PlantPage, PlantQuery } from '../../plants/plant-storage.ts';
import type { Filter, PlantStep } from '../../plants/scans.ts';
import type { Prepare, Statement } from '../driver.ts';

const plantsByOwner = 'plants INDEXED BY plants_by_owner';

// INDEXED BY fixes the query plan, whatever statistics the file has: SQLite rejects a statement that cannot use
// its index. A manager's list is a range of the primary key.
const ranges = {
  store: 'plants NOT INDEXED WHERE store = ?1',
  owner: `${plantsByOwner} WHERE store = ?1 AND owner = ?4`,
};
type RangeKind = keyof typeof ranges;

/** Plants of a step. The largest, whose text is emoji, take less than 1 ms. So does a merge of 1,000 owners (decision 22). */
const maxStepPlants = 120;

/** Plants that a step filters inside SQLite. */
const maxFilteredPlants = 500;

/** What a plant that passes a filter fulfils. Folding a text changes only the case of ASCII, as `lower` does, or more bytes. */
const conditions = {
  tag: 'tag = ?5',
  text: `(
        octet_length(name) + octet_length(tag) > length(name) + length(tag)
        OR instr(lower(name), ?5) OR instr(lower(tag), ?5))`,
  name: '(octet_length(name) > length(name) OR lower(name) BETWEEN ?5 AND ?6)',
};

/** The id of the owner's next plant above `after`. Both arguments are SQL expressions. */
const nextIdSql = (owner: string, after: string) =>
  `(
        SELECT id FROM ${plantsByOwner}
        WHERE store = ?1 AND owner = ${owner} AND id > ${after} ORDER BY id LIMIT 1)`;

const ownerNameSql =
  '(SELECT users.name FROM users WHERE users.store = plants.store AND users.id = plants.owner)';

/**
 * Returns a page as one row. The subquery finds the id of the page's last plant, or null if the page is not full.
 * Then the statement reads the range up to that id, and checks whether another plant follows.
 *
 * The plants need no ORDER BY outside the subquery, because the index returns them in id order. The offset is `?3 - 1`,
 * because SQLite plans a statement again at each run if its LIMIT or OFFSET is a bare parameter. The caller has the same
 * access to all plants.
 */
export function listSql(
  kind: RangeKind,
  fields: readonly PlantField[],
  access: ShareAccess,
): string {
  const columns = {
    id: 'id',
    ...eachText((field) => field),
    owner: ownerNameSql,
    access: `'${access}'`,
  };
  const members = fields.map((field) => `'${field}', ${columns[field]}`).join();
  const range = ranges[kind];
  return `
    SELECT json_group_array(json_object(${members})), last, EXISTS (SELECT 1 FROM ${range} AND id > last)
    FROM (SELECT (SELECT id FROM ${range} AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?3 - 1) AS last)
         CROSS JOIN ${range} AND id > ?2 AND id <= coalesce(last, ${maxId})`;
}

/** The parameter of a statement about the plants of one owner. */
function ownerOf(reach: Reach): readonly number[] {
  return reach === 'all' ? [] : reach;
}

const toPlant = ([id, owner, ...texts]: PlantRow) => plantOf(id, owner, texts);

type PageRow = [array: string, last: number | null, hasMore: number];

export function openLists(prepare: Prepare) {
  const filterOf = (kind: RangeKind) => {
    const passing = (by: keyof typeof conditions) =>
      prepare<PlantRow>(`
        SELECT id, owner, ${textColumns} FROM ${ranges[kind]}
        AND id > ?2 AND id <= ?3 AND ${conditions[by]} ORDER BY id LIMIT ${maxStepPlants}`);
    const end = prepare<[id: number]>(`
      SELECT id FROM ${ranges[kind]} AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?3 - 1`);
    const count = prepare<[count: number, last: number | null]>(`
      SELECT count(*), max(id) FROM (
        SELECT id FROM ${ranges[kind]} AND id > ?2 ORDER BY id LIMIT ?3 + 0)`);
    return { end, count, tag: passing('tag'), text: passing('text'), name: passing('name') };
  };
  const filters = { store: filterOf('store'), owner: filterOf('owner') };
  // Merges the plants of several owners by id, up to `?3`. The queue of the recursive query holds the next plant of
  // each owner: when it takes the first, it adds that owner's next plant. Owners without more plants sort last, with id
  // null.
  const merge = prepare<PlantRow>(`
    WITH RECURSIVE merged (id, owner) AS (
      SELECT ${nextIdSql('reach.value', '?2')}, reach.value FROM json_each(?4) AS reach
      UNION ALL
      SELECT ${nextIdSql('merged.owner', 'merged.id')}, owner FROM merged WHERE id IS NOT NULL
      ORDER BY 1 NULLS LAST LIMIT ?3 + 0
    )
    SELECT plants.id, plants.owner, ${textColumns} FROM merged CROSS JOIN ${plantsByOwner}
    WHERE store = ?1 AND plants.owner = merged.owner AND plants.id = merged.id`);
  /** Prepared on demand, by kind and fields: most services use few of the combinations. */
  const pages = new Map<string, Statement<PageRow>>();

  return {
    /** A page that is one range. */
    page(caller: ReadAccess, query: PlantQuery): PlantPage {
      const { store, read, user } = caller;
      const { after, limit, fields } = query;
      const access = accessTo(caller, user);
      const kind = read === 'all' ? 'store' : 'owner';
      const key = `${kind} ${access} ${fields.join()}`;
      const statement = pages.get(key) ?? prepare<PageRow>(listSql(kind, fields, access));
      pages.set(key, statement);
      const [array = '[]', last, hasMore] =
        statement.get(store, after, limit, ...ownerOf(read)) ?? [];
      return { json: array.slice(1, -1), next: hasMore === 1 ? (last ?? undefined) : undefined };
    },

    /**
     * The next plants of several owners: `limit`, or as many as a step can have. Those of one range are filtered: without
     * a filter, they are a page.
     */
    step({ store, read }: ReadAccess, after: number, limit: number, filter?: Filter): PlantStep {
      const source = sourceOf(read);
      if (filter !== undefined && source !== 'owners') {
        const { by, values } = filter;
        const owner = ownerOf(read);
        const range = [store, after, Math.min(limit, maxFilteredPlants), ...owner] as const;
        if (by === 'none') {
          const [leftOut = 0, last] = filters[source].count.get(...range) ?? [];
          return { rows: [], scannedTo: last ?? undefined, leftOut };
        }
        const { end, [by]: passing } = filters[source];
        const [last] = end.get(...range) ?? [];
        const rows = passing.all(store, after, last ?? maxId, owner[0] ?? null, ...values);
        const scannedTo = rows.length < maxStepPlants ? last : rows.at(-1)?.[0];
        return { rows: rows.map(toPlant), scannedTo };
      }
      const count = Math.min(limit, maxStepPlants);
      const rows = merge.all(store, after, count, JSON.stringify(read));
      const scannedTo = rows.length < count ? undefined : rows.at(-1)?.[0];
      return { rows: rows.map(toPlant), scannedTo };
    },
  };
}
