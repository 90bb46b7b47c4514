/**
 * Plants in SQLite. The caller begins and ends transactions.
 */
import type { DatabaseSync } from 'node:sqlite';
import { reaches, soleOwner, type Reach, type ReadAccess } from '../access.ts';
import { maxId, randomId } from '../ids.ts';
import type { ListKind } from '../lists.ts';
import type { Plant, PlantField } from '../plant.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import { idTaken } from '../problem.ts';
import { stepOf, type ScanStep } from '../scan.ts';
import { maxPlantsOfStep, Owners, type OwnersProgress } from './owners.ts';
import type { PlantCounts } from './plant-counts.ts';
import { prepare, type Statement } from './statement.ts';
import type { Stores, StoreRow } from './stores.ts';

const plantsByOwner = 'plants INDEXED BY plants_by_owner';

// INDEXED BY fixes the query plan, whatever statistics the file has: SQLite rejects a statement that cannot use
// its index. A manager's list is a range of the primary key.
const ranges = {
  store: 'plants NOT INDEXED WHERE store = ?1',
  storeTag: 'plants INDEXED BY plants_by_tag WHERE store = ?1 AND tag = ?5',
  owner: `${plantsByOwner} WHERE store = ?1 AND owner = ?5`,
  // There is no index by owner and tag, because every create would have to update it
  // (docs/decisions/0007-indexes.md).
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

export const plantSql = {
  find: `
    SELECT name, tag, owner FROM plants
    WHERE store = ? AND id = ?`,
  findOwner: `
    SELECT owner FROM plants
    WHERE store = ? AND id = ?`,
  findOwnerName: `
    SELECT users.name FROM plants JOIN users ON users.store = plants.store AND users.user = plants.owner
    WHERE plants.store = ? AND plants.id = ?`,
  delete: `
    DELETE FROM plants
    WHERE store = ? AND id = ? AND owner = ?`,
  endOfStep: `
    SELECT id FROM ${plantsByOwner}
    WHERE store = ? AND owner = ? AND id > ? ORDER BY id LIMIT 1 OFFSET ${maxStepPlants - 1}`,
  insert: `
    INSERT INTO plants (store, id, owner, tag, name) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
};

export class Plants {
  readonly #database: DatabaseSync;
  readonly #stores: Stores;
  /** Undefined without quotas. */
  readonly #counts: PlantCounts | undefined;
  readonly #owners: Owners;
  readonly #find: Statement<[name: string, tag: string, owner: number]>;
  readonly #findOwner: Statement<[owner: number]>;
  readonly #findOwnerName: Statement<[name: string]>;
  readonly #delete: Statement;
  readonly #endOfStep: Statement<[id: number]>;
  readonly #insert: Statement;
  /** Prepared on demand, by kind and fields: most services use few of the combinations. */
  readonly #pages = new Map<string, Statement<PageRow>>();

  constructor(database: DatabaseSync, stores: Stores, counts?: PlantCounts) {
    this.#database = database;
    this.#stores = stores;
    this.#counts = counts;
    this.#owners = new Owners(database);
    this.#find = prepare(database, plantSql.find);
    this.#findOwner = prepare(database, plantSql.findOwner);
    this.#findOwnerName = prepare(database, plantSql.findOwnerName);
    this.#delete = prepare(database, plantSql.delete);
    this.#endOfStep = prepare(database, plantSql.endOfStep);
    this.#insert = prepare(database, plantSql.insert);
  }

  /** Returns the id of the new plant. If `id` is undefined, the store assigns one. */
  create(
    store: number,
    owner: number,
    { id: requestedId, name, tag }: { id: number | undefined; name: string; tag: string },
  ): number {
    const row = this.#stores.loadRow(store);
    if (this.#counts !== undefined)
      this.#refuseOverQuota(this.#counts, store, owner, row, requestedId);
    let id = requestedId ?? row.nextId ?? randomId();
    while (this.#insert.run(store, id, owner, tag, name).changes === 0) {
      if (requestedId !== undefined || row.nextId !== undefined) throw idTaken(id);
      id = randomId();
    }
    row.raiseLastId(id);
    this.#counts?.add(store, owner, row, 1);
    row.incrementVersions(owner);
    return id;
  }

  /** An id that is taken is the reason that is reported, even if there is no room. */
  #refuseOverQuota(
    counts: PlantCounts,
    store: number,
    owner: number,
    row: StoreRow,
    requestedId: number | undefined,
  ): void {
    const problem = counts.problemOf(store, owner, row);
    if (problem === undefined) return;
    const isTaken =
      requestedId !== undefined && this.#findOwner.get(store, requestedId) !== undefined;
    throw isTaken ? idTaken(requestedId) : problem;
  }

  find({ store, read }: ReadAccess, id: number): Plant | undefined {
    const row = this.#find.get(store, id);
    if (row === undefined) return undefined;
    const [name, tag, owner] = row;
    return reaches(read, owner) ? { id, name, tag } : undefined;
  }

  findOwner(store: number, id: number): string | undefined {
    return this.#findOwnerName.get(store, id)?.[0];
  }

  delete(store: number, reach: Reach, id: number): boolean {
    // Not RETURNING: it would slow down every delete, and this lookup only those with several owners in reach.
    const owner = soleOwner(reach) ?? this.#findOwner.get(store, id)?.[0];
    if (owner === undefined || !reaches(reach, owner)) return false;
    if (this.#delete.run(store, id, owner).changes === 0) return false;
    const row = this.#stores.loadRow(store);
    this.#counts?.add(store, owner, row, -1);
    row.incrementVersions(owner);
    return true;
  }

  list(
    kind: Exclude<ListKind, 'owners' | 'scan'>,
    { store, read }: ReadAccess,
    query: PlantQuery,
  ): PlantPage {
    const [array, , last, hasMore] = this.#readPage(kind, store, read, query);
    return { json: array.slice(1, -1), next: hasMore === 1 ? (last ?? undefined) : undefined };
  }

  /**
   * One step of a list by tag, or of a list of several owners: the matches among the next plants in reach.
   */
  scanStep({ store, read }: ReadAccess, query: PlantQuery, progress: OwnersProgress): ScanStep {
    const { after, limit, tag } = query;
    const owner = soleOwner(read);
    if (owner === undefined) {
      const maxPlants = maxPlantsOfStep(read);
      const range = {
        after,
        limit: tag === undefined ? Math.min(limit, maxPlants) : maxPlants,
      };
      const { rows, scannedTo } = this.#owners.step(store, read, range, progress);
      const matches = tag === undefined ? rows : rows.filter(([, , plantTag]) => plantTag === tag);
      return stepOf(matches, query, scannedTo);
    }
    const scannedTo = this.#endOfStep.get(store, owner, after)?.[0];
    const [array, plantCount, last, hasMore] = this.#readPage(
      'ownerTag',
      store,
      read,
      query,
      scannedTo,
    );
    return {
      json: array.slice(1, -1),
      plantCount,
      last: last ?? undefined,
      hasMore: hasMore === 1,
      scannedTo,
    };
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
    return this.#pageStatement(kind, fields).get(...values) as PageRow; // an aggregate always returns a row
  }

  #pageStatement(kind: RangeKind, fields: readonly PlantField[]): Statement<PageRow> {
    const key = `${kind} ${fields.join()}`;
    let statement = this.#pages.get(key);
    if (statement === undefined) {
      statement = prepare(this.#database, listSql(kind, fields));
      this.#pages.set(key, statement);
    }
    return statement;
  }
}
