/**
 * Finds and lists plants in PostgreSQL.
 */
import { reaches, soleOwner, type ReadAccess } from '../access.ts';
import { maxId } from '../ids.ts';
import { listKind, pageOf, type ListKind } from '../lists.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import type { Plant } from '../plant.ts';
import { isSparse, Probe } from '../probe.ts';
import { scan, stepOf, type ScanStep } from '../scan.ts';
import { turnOf } from '../time-slices.ts';
import {
  findSql,
  listSql,
  listValues,
  maxMergedPlants,
  mergeSql,
  ownedSql,
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

  async #listOwners(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const { store, read } = caller;
    // Enough if the owners have about as many plants. If one of them has most, the next steps read more of each.
    let plantsEach = 8 + Math.ceil((2 * Math.min(query.limit, maxMergedPlants)) / read.length);
    let isProbing = true;
    return scan(query, async ({ after, limit }) => {
      const step = { ...query, limit };
      const probe = new Probe(read, { after, limit });
      if (isProbing) await this.#fill(probe, caller);
      const wanted = Math.min(probe.missing, maxMergedPlants);
      if (wanted === 0) return stepOf(probe.found, step, undefined);
      const values = [store, probe.after, maxId, wanted, read, Math.min(plantsEach, wanted)];
      const rows = await this.#query(caller, mergeSql, values);
      const completeTo = rows[0]?.[3] ?? maxId;
      const merged = rows.filter(([id]) => id <= completeTo);
      if (merged.length < wanted / 2) plantsEach *= 2;
      const isEnd = merged.length < wanted && completeTo === maxId;
      const mergedTo = isEnd ? undefined : merged.at(-1)?.[0];
      // The store has at most one plant for each id.
      isProbing = !isSparse(merged.length, (mergedTo ?? maxId) - (probe.after ?? after));
      return stepOf([...probe.found, ...merged], step, mergedTo);
    });
  }

  async #fill(probe: Probe, caller: ReadAccess): Promise<void> {
    while (probe.limit > 0 && probe.after !== undefined) {
      const values = [caller.store, probe.after, maxId, probe.limit];
      probe.add(await this.#query(caller, ownedSql, values));
    }
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
