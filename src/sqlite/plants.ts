/**
 * Plants in SQLite. The caller begins and ends transactions.
 */
import type { DatabaseSync } from 'node:sqlite';
import { reaches, soleOwner, type Reach, type ReadAccess } from '../access.ts';
import { maxId } from '../ids.ts';
import {
  pageOf,
  type ListKind,
  type LongerPlantRow,
  type OwnedPlantRow,
  type PlantRow,
} from '../lists.ts';
import type { Plant, PlantField } from '../plant.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import { Probe } from '../probe.ts';
import { idsExhausted, idTaken } from '../problem.ts';
import { stepOf, type ScanStep } from '../scan.ts';
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

/** Plants that one scan step reads. A step takes less than 1 ms for one owner, and about 1 ms for several. */
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

/** The id of the owner's next plant above `after`. Both arguments are SQL expressions. */
const nextIdSql = (owner: string, after: string) =>
  `(
        SELECT id FROM ${plantsByOwner}
        WHERE store = ?1 AND owner = ${owner} AND id > ${after} AND id <= ?3 ORDER BY id LIMIT 1)`;

export const plantSql = {
  // `?4 + 0`, because of what listSql says about LIMIT.
  owned: `
    SELECT id, name, tag, owner FROM ${ranges.store} AND id > ?2 AND id <= ?3 ORDER BY id LIMIT ?4 + 0`,
  // Merges the plants of several owners by id, up to `?4`. The queue of the recursive query holds the next
  // plant of each owner. When it takes the first, it adds that owner's next plant. Owners without more plants
  // sort last, with id null.
  merge: `
    WITH RECURSIVE merged (id, owner) AS (
      SELECT ${nextIdSql('reach.value', '?2')}, reach.value FROM json_each(?5) AS reach
      UNION ALL
      SELECT ${nextIdSql('merged.owner', 'merged.id')}, owner FROM merged WHERE id IS NOT NULL
      ORDER BY 1 NULLS LAST LIMIT ?4 + 0
    )
    SELECT plants.id, name, tag FROM merged CROSS JOIN ${plantsByOwner}
    WHERE store = ?1 AND plants.owner = merged.owner AND plants.id = merged.id`,
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
    WHERE store = ? AND owner = ? AND id > ? AND id <= ? ORDER BY id LIMIT 1 OFFSET ${maxStepPlants - 1}`,
  insert: `
    INSERT INTO plants (store, id, owner, tag, name) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
};

export class Plants {
  readonly #database: DatabaseSync;
  readonly #stores: Stores;
  /** Undefined without quotas. */
  readonly #counts: PlantCounts | undefined;
  readonly #owned: Statement<OwnedPlantRow>;
  readonly #merge: Statement<PlantRow>;
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
    this.#owned = prepare(database, plantSql.owned);
    this.#merge = prepare(database, plantSql.merge);
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
    const id = requestedId ?? row.assignId();
    const inserted = this.#insert.run(store, id, owner, tag, name);
    if (inserted.changes === 0) throw idTaken(id);
    row.raiseLastId(id);
    this.#counts?.add(store, owner, row, 1);
    row.incrementVersions(owner);
    return id;
  }

  /** An id that is taken or cannot be assigned is the reason that is reported, even if there is no room. */
  #refuseOverQuota(
    counts: PlantCounts,
    store: number,
    owner: number,
    row: StoreRow,
    requestedId: number | undefined,
  ): void {
    const problem = counts.problemOf(store, owner, row);
    if (problem === undefined) return;
    if (requestedId === undefined) throw row.isExhausted ? idsExhausted() : problem;
    throw this.#findOwner.get(store, requestedId) === undefined ? problem : idTaken(requestedId);
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

  list(kind: Exclude<ListKind, 'scan'>, { store, read }: ReadAccess, query: PlantQuery): PlantPage {
    if (kind === 'owners') return pageOf(this.#readOwners(store, read, query), query);
    const [array, , last, hasMore] = this.#readPage(kind, store, read, query);
    return { json: array.slice(1, -1), next: hasMore === 1 ? (last ?? undefined) : undefined };
  }

  /** One step of a list by tag: the matches among the next plants of the owners in reach. */
  scanStep({ store, read }: ReadAccess, query: PlantQuery): ScanStep {
    const { after, upTo = maxId, tag } = query;
    const owner = soleOwner(read);
    if (owner === undefined) {
      const rows = this.#readOwners(store, read, { ...query, limit: maxStepPlants });
      const scannedTo = rows.length > maxStepPlants ? rows.at(-1)?.[0] : undefined;
      const matches = rows.filter(([, , plantTag]) => plantTag === tag);
      return stepOf(matches, query, scannedTo);
    }
    const scannedTo = this.#endOfStep.get(store, owner, after, upTo)?.[0];
    const range = { ...query, upTo: scannedTo ?? upTo };
    const [array, plantCount, last, hasMore] = this.#readPage('ownerTag', store, read, range);
    return {
      json: array.slice(1, -1),
      plantCount,
      last: last ?? undefined,
      hasMore: hasMore === 1,
      scannedTo,
    };
  }

  /** Up to `limit + 1` plants of several owners. */
  #readOwners(store: number, reach: Reach, query: PlantQuery): LongerPlantRow[] {
    const { upTo = maxId } = query;
    const probe = new Probe(reach, query);
    while (probe.limit > 0 && probe.after !== undefined)
      probe.add(this.#owned.all(store, probe.after, upTo, probe.limit));
    if (probe.missing === 0 || probe.after === undefined) return probe.found;
    const owners = JSON.stringify(reach);
    return [...probe.found, ...this.#merge.all(store, probe.after, upTo, probe.missing, owners)];
  }

  #readPage(
    kind: RangeKind,
    store: number,
    reach: Reach,
    { after, upTo = maxId, limit, tag, fields }: PlantQuery,
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
