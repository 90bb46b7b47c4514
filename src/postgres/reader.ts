/**
 * Finds and lists plants in PostgreSQL.
 */
import { reaches, soleOwner, type ReadAccess } from '../access.ts';
import { maxId } from '../ids.ts';
import {
  isDense,
  listKind,
  maxSearchedPlants,
  minSearchedOwners,
  pageOf,
  type ListKind,
} from '../lists.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import type { Plant } from '../plant.ts';
import { scan, stepOf, type ScanStep } from '../scan.ts';
import { turnOf } from '../time-slices.ts';
import {
  findSql,
  listSql,
  listValues,
  inReachSql,
  mergeSql,
  scanStepEndSql,
  scanStepSql,
} from './plants.ts';
import type { Cluster } from './cluster.ts';
import type { Row, Statement } from './connection.ts';
import type { Readiness } from './readiness.ts';

export class Reader {
  readonly #cluster: Cluster;
  readonly #readiness: Readiness;

  constructor(cluster: Cluster, readiness: Readiness) {
    this.#cluster = cluster;
    this.#readiness = readiness;
  }

  async find(caller: ReadAccess, id: number): Promise<Plant | undefined> {
    const { store, read } = caller;
    return this.#read(store, async () => {
      const [row] = await this.#query(caller, findSql, [store, id]);
      if (row === undefined) return undefined;
      const [name, tag, owner] = row;
      return reaches(read, owner) ? { id, name, tag } : undefined;
    });
  }

  async list(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const kind = listKind(caller.read, query);
    if (kind === 'scan') {
      return scan(query, (range) =>
        this.#read(caller.store, () => this.#scanStep(caller, { ...query, ...range })),
      );
    }
    return this.#read(caller.store, () => this.#readPage(kind, caller, query));
  }

  async #readPage(
    kind: Exclude<ListKind, 'scan'>,
    caller: ReadAccess,
    query: PlantQuery,
  ): Promise<PlantPage> {
    if (kind === 'owners') return this.#listOwners(caller, query);
    const values = listValues(kind, caller, query);
    return pageOf(await this.#query(caller, listSql[kind], values), query);
  }

  #query<R extends Row>(
    caller: ReadAccess,
    statement: Statement<R>,
    values: readonly unknown[],
  ): Promise<R[]> {
    return this.#cluster.read(caller.store, statement, values, turnOf(caller));
  }

  #read<T>(store: number, read: () => Promise<T>): Promise<T> {
    return this.#readiness.read(this.#cluster.ofStore(store), read);
  }

  /** Each step searches the next plants of the store for those in reach. Where they are few, it merges those of each owner. */
  async #listOwners(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    let isSearching = caller.read.length >= minSearchedOwners;
    // Enough if the owners have about as many plants. If one of them has most, the next steps read more of each.
    let plantsEach = 8 + Math.ceil((2 * query.limit) / caller.read.length);
    return scan(query, async ({ after, limit }) => {
      const step = { ...query, limit };
      const wanted = limit + 1;
      if (isSearching) {
        const { rows, searchedTo } = await this.#search(caller, after, wanted);
        isSearching = isDense(rows.length, maxSearchedPlants);
        return stepOf(rows, step, searchedTo);
      }
      const { rows, mergedTo } = await this.#merge(caller, after, wanted, plantsEach);
      if (rows.length < wanted / 2) plantsEach *= 2;
      isSearching = isDense(rows.length, (mergedTo ?? maxId) - after); // a plant for each id, at most
      return stepOf(rows, step, mergedTo);
    });
  }

  async #search(caller: ReadAccess, after: number, wanted: number) {
    const rows = await this.#query(caller, inReachSql, [caller.store, after, wanted, caller.read]);
    const [last, , , , nth] = rows.at(-1) ?? [];
    return {
      rows: rows.filter(([, , , isInReach]) => isInReach),
      searchedTo: nth === maxSearchedPlants ? last : undefined,
    };
  }

  async #merge(caller: ReadAccess, after: number, wanted: number, plantsEach: number) {
    const { store, read } = caller;
    const values = [store, after, maxId, wanted, read, Math.min(plantsEach, wanted)];
    const merged = await this.#query(caller, mergeSql, values);
    const completeTo = merged[0]?.[3] ?? maxId;
    const rows = merged.filter(([id]) => id <= completeTo);
    const isEnd = rows.length < wanted && completeTo === maxId;
    return { rows, mergedTo: isEnd ? undefined : rows.at(-1)?.[0] };
  }

  async #scanStep(caller: ReadAccess, query: PlantQuery): Promise<ScanStep> {
    const { store, read } = caller;
    const { after, limit, tag } = query;
    const owner = soleOwner(read);
    const kind = owner === undefined ? 'owners' : 'owner';
    const owners = owner ?? read;
    const [end] = await this.#query(caller, scanStepEndSql[kind], [store, owners, after, maxId]);
    const scannedTo = end?.[0] ?? undefined;
    const range = [store, after, scannedTo ?? maxId, limit, owners, tag];
    return stepOf(await this.#query(caller, scanStepSql[kind], range), query, scannedTo);
  }
}
