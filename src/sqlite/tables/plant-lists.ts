/**
 * Lists of plants in SQLite. Each read takes less than 2 ms, however long the list.
 */
import {
  accessTo,
  soleOwner,
  type Reach,
  type ReadAccess,
  type ShareAccess,
} from '../../access/access.ts';
import { maxId } from '../../plants/ids.ts';
import {
  isDense,
  minScannedOwners,
  type PlantRow,
  type PlantScanStep,
} from '../../plants/lists.ts';
import type { PlantField } from '../../plants/plant.ts';
import type { PlantPage, PlantQuery } from '../../plants/plant-storage.ts';
import type { Prepare, Statement } from '../driver.ts';

const plantsByOwner = 'plants INDEXED BY plants_by_owner';

// INDEXED BY fixes the query plan, whatever statistics the file has: SQLite rejects a statement that cannot use
// its index. A manager's list is a range of the primary key.
const ranges = {
  store: 'plants NOT INDEXED WHERE store = ?1',
  owner: `${plantsByOwner} WHERE store = ?1 AND owner = ?4`,
};
type RangeKind = keyof typeof ranges;

/** Plants that a step reads inside SQLite to find those of owners, with a tag or with a text. The largest take 1 ms. */
const maxScannedPlants = 500;
/** Plants that a step returns to be filtered here. The largest, whose text is emoji, take 1 to 2 ms. */
const maxReturnedPlants = 120;
/**
 * Work of a step that merges owners, which takes about 1.5 ms. The unit is the search for the first plant of an owner.
 * Each plant that is read takes as long as two of them.
 */
const maxMergeWork = 1_300;
const workOfPlant = 2;

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
    name: 'name',
    tag: 'tag',
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

type PageRow = [array: string, last: number | null, hasMore: number];

/** A step has more plants than the page takes, or all up to `scannedTo`. */
interface Step extends PlantScanStep {
  /** How the next step reads. */
  isDense: boolean;
}

export function openLists(prepare: Prepare) {
  const ofOwner = prepare<PlantRow>(`
    SELECT id, name, tag, owner FROM ${plantsByOwner}
    WHERE store = ? AND owner = ? AND id > ? ORDER BY id LIMIT ${maxReturnedPlants}`);
  const endOfScan = prepare<[id: number]>(`
    SELECT id FROM plants NOT INDEXED
    WHERE store = ? AND id > ? ORDER BY id LIMIT 1 OFFSET ${maxScannedPlants - 1}`);
  const searchFor = (condition: string) =>
    prepare<PlantRow>(`
      SELECT id, name, tag, owner FROM plants NOT INDEXED
      WHERE store = ?1 AND id > ?2 AND id <= ?3 AND ${condition} ORDER BY id LIMIT ?4 + 0`);
  const search = {
    owners: searchFor('+owner IN (SELECT value FROM json_each(?5) AS reach)'),
    tag: searchFor('tag = ?5'),
    // The plants that can contain a folded text: folding changes only the case of ASCII, as `lower` does.
    text: searchFor(`(
      octet_length(name) + octet_length(tag) > length(name) + length(tag)
      OR instr(lower(name), ?5) OR instr(lower(tag), ?5))`),
  };
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
    SELECT plants.id, name, tag, plants.owner FROM merged CROSS JOIN ${plantsByOwner}
    WHERE store = ?1 AND plants.owner = merged.owner AND plants.id = merged.id`);
  /** Prepared on demand, by kind and fields: most services use few of the combinations. */
  const pages = new Map<string, Statement<PageRow>>();

  function readOwner(store: number, owner: number, after: number): Step {
    const rows = ofOwner.all(store, owner, after);
    return { rows, scannedTo: rows[maxReturnedPlants - 1]?.[0], isDense: true };
  }

  /** Searches the next plants of the store for those of owners, which are a JSON array, with a tag or with a text. */
  function searchStore(
    store: number,
    by: keyof typeof search,
    wanted: string,
    after: number,
    limit: number,
  ): Step {
    const end = endOfScan.get(store, after)?.[0];
    const rows = search[by].all(store, after, end ?? maxId, limit + 1, wanted);
    const last = rows[limit]?.[0];
    const isDenseHere = last !== undefined || isDense(rows.length, maxScannedPlants);
    return { rows, scannedTo: last ?? end, isDense: isDenseHere };
  }

  /** Merges the next plants of each owner. */
  function mergeOwners(store: number, reach: Reach, after: number, limit: number): Step {
    const rows = merge.all(store, after, limit + 1, JSON.stringify(reach));
    const last = rows[limit]?.[0];
    // The store has at most one plant for each id.
    const isDenseHere = last !== undefined && isDense(rows.length, last - after);
    return { rows, scannedTo: last, isDense: isDenseHere };
  }

  return {
    page(kind: RangeKind, caller: ReadAccess, query: PlantQuery): PlantPage {
      const { store, read, user } = caller;
      const { after, limit, fields } = query;
      const access = accessTo(caller, user);
      const key = `${kind} ${access} ${fields.join()}`;
      const statement = pages.get(key) ?? prepare<PageRow>(listSql(kind, fields, access));
      pages.set(key, statement);
      const owner = soleOwner(read);
      const values = owner === undefined ? [] : [owner];
      const [array = '[]', last, hasMore] = statement.get(store, after, limit, ...values) ?? [];
      return { json: array.slice(1, -1), next: hasMore === 1 ? (last ?? undefined) : undefined };
    },

    /**
     * One step of a list by tag, of a search, or of several owners: the matches among the next plants in reach. `wasDense`
     * is the `isDense` of the step before, and true in the first one.
     */
    scanStep({ store, read }: ReadAccess, query: PlantQuery, wasDense: boolean): Step {
      const { after, tag, q } = query;
      if (read === 'all') {
        const wanted = tag ?? q;
        if (wanted === undefined) throw new Error('the plants of a store are a page');
        const limit = q === undefined ? query.limit : maxReturnedPlants;
        return searchStore(store, tag === undefined ? 'text' : 'tag', wanted, after, limit);
      }
      const maxPlants = Math.floor((maxMergeWork - read.length) / workOfPlant);
      const isFiltered = tag !== undefined || q !== undefined;
      const limit = Math.min(maxPlants, isFiltered ? maxReturnedPlants : query.limit);
      const canScan = wasDense && read.length >= minScannedOwners;
      const owner = soleOwner(read);
      const step =
        owner !== undefined
          ? readOwner(store, owner, after)
          : canScan
            ? searchStore(store, 'owners', JSON.stringify(read), after, limit)
            : mergeOwners(store, read, after, limit);
      if (tag === undefined) return step;
      return { ...step, rows: step.rows.filter(([, , plantTag]) => plantTag === tag) };
    },
  };
}
