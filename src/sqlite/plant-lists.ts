/**
 * Lists of plants in SQLite. Each read takes less than 2 ms, however long the list.
 */
import type { DatabaseSync } from 'node:sqlite';
import { soleOwner, type Reach, type ReadAccess } from '../access.ts';
import { maxId } from '../ids.ts';
import type { ListKind } from '../lists.ts';
import type { PlantField } from '../plant.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import { stepOf, type ScanStep } from '../scan.ts';
import type { Statement } from './driver.ts';
import { maxPlantsOfStep, Owners, type OwnersProgress } from './owners.ts';
import { Table } from './table.ts';

const plantsByOwner = 'plants INDEXED BY plants_by_owner';

// INDEXED BY fixes the query plan, whatever statistics the file has: SQLite rejects a statement that cannot use
// its index. A manager's list is a range of the primary key.
const ranges = {
  store: 'plants NOT INDEXED WHERE store = ?1',
  storeTag: 'plants INDEXED BY plants_by_tag WHERE store = ?1 AND tag = ?5',
  owner: `${plantsByOwner} WHERE store = ?1 AND owner = ?5`,
  ownerTag: `${plantsByOwner} WHERE store = ?1 AND owner = ?5 AND tag = ?6`,
};
type RangeKind = keyof typeof ranges;

/** Plants that one scan step reads for one owner, which takes less than 1 ms. */
const maxStepPlants = 500;

/**
 * Returns a page as one row. The subquery finds the id of the page's last plant, or null if the page is not full.
 * Then the statement reads the range up to that id, and checks whether another plant follows.
 *
 * The plants need no ORDER BY outside the subquery, because the index returns them in id order.
 *
 * The offset is `?4 - 1`, because SQLite plans a statement again at each run if its LIMIT or OFFSET is a bare
 * parameter. Each range has one upper bound on the id, because SQLite uses only one of two.
 */
export function listSql(kind: RangeKind, fields: readonly PlantField[]): string {
  const members = fields.map((field) => `'${field}', ${field}`).join();
  const range = `${ranges[kind]} AND id <= ?3`;
  return `
    SELECT json_group_array(json_object(${members})), count(*), last,
           EXISTS (SELECT 1 FROM ${range} AND id > last)
    FROM (SELECT (SELECT id FROM ${range} AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?4 - 1) AS last)
         CROSS JOIN ${ranges[kind]} AND id > ?2 AND id <= coalesce(last, ?3)`;
}

type PageRow = [array: string, plants: number, last: number | null, hasMore: number];

export class PlantLists extends Table {
  readonly #owners: Owners;
  readonly #endOfStep = this.prepare<[id: number]>(`
    SELECT id FROM ${plantsByOwner}
    WHERE store = ? AND owner = ? AND id > ? ORDER BY id LIMIT 1 OFFSET ${maxStepPlants - 1}`);
  /** Prepared on demand, by kind and fields: most services use few of the combinations. */
  readonly #pages = new Map<string, Statement<PageRow>>();

  constructor(database: DatabaseSync) {
    super(database);
    this.#owners = new Owners(database);
  }

  page(
    kind: Exclude<ListKind, 'owners' | 'scan'>,
    { store, read }: ReadAccess,
    query: PlantQuery,
  ): PlantPage {
    const [array, , last, hasMore] = this.#readPage(kind, store, read, query);
    return { json: array.slice(1, -1), next: hasMore === 1 ? (last ?? undefined) : undefined };
  }

  /** One step of a list by tag, or of a list of several owners: the matches among the next plants in reach. */
  scanStep({ store, read }: ReadAccess, query: PlantQuery, progress: OwnersProgress): ScanStep {
    const owner = soleOwner(read);
    return owner === undefined
      ? this.#stepOfOwners(store, read, query, progress)
      : this.#stepOfOwner(store, owner, query);
  }

  #stepOfOwner(store: number, owner: number, query: PlantQuery): ScanStep {
    const scannedTo = this.#endOfStep.get(store, owner, query.after)?.[0];
    const page = this.#readPage('ownerTag', store, [owner], query, scannedTo);
    const [array, plantCount, last, hasMore] = page;
    return {
      json: array.slice(1, -1),
      plantCount,
      last: last ?? undefined,
      hasMore: hasMore === 1,
      scannedTo,
    };
  }

  #stepOfOwners(
    store: number,
    reach: Reach,
    query: PlantQuery,
    progress: OwnersProgress,
  ): ScanStep {
    const { after, tag } = query;
    const maxPlants = maxPlantsOfStep(reach);
    const limit = tag === undefined ? Math.min(query.limit, maxPlants) : maxPlants;
    const { rows, scannedTo } = this.#owners.step(store, reach, { after, limit }, progress);
    const matches = tag === undefined ? rows : rows.filter(([, , plantTag]) => plantTag === tag);
    return stepOf(matches, query, scannedTo);
  }

  #readPage(
    kind: RangeKind,
    store: number,
    reach: Reach,
    { after, limit, tag, fields }: PlantQuery,
    upTo = maxId,
  ): PageRow {
    const values: (number | string)[] = [store, after, upTo, limit];
    const owner = soleOwner(reach);
    if (owner !== undefined) values.push(owner);
    if (tag !== undefined) values.push(tag);
    return this.#statementOf(kind, fields).get(...values) as PageRow; // an aggregate always returns a row
  }

  #statementOf(kind: RangeKind, fields: readonly PlantField[]): Statement<PageRow> {
    const key = `${kind} ${fields.join()}`;
    let statement = this.#pages.get(key);
    if (statement === undefined) {
      statement = this.prepare<PageRow>(listSql(kind, fields));
      this.#pages.set(key, statement);
    }
    return statement;
  }
}
