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
import type { Readiness } from './readiness.ts';

export class Reader {
  readonly #cluster: Cluster;
  readonly #readiness: Readiness;

  constructor(cluster: Cluster, readiness: Readiness) {
    this.#cluster = cluster;
    this.#readiness = readiness;
  }

  async find({ store, read }: ReadAccess, id: number): Promise<Plant | undefined> {
    return this.#read(store, async () => {
      const [row] = await this.#cluster.read(store, findSql, [store, id]);
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
    return pageOf(await this.#cluster.read(caller.store, listSql[kind], values), query);
  }

  #read<T>(store: number, read: () => Promise<T>): Promise<T> {
    return this.#readiness.read(this.#cluster.ofStore(store), read);
  }

  async #listOwners({ store, read }: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    // Enough if the owners have about as many plants. If one of them has most, the next steps read more of each.
    let plantsEach = 8 + Math.ceil((2 * Math.min(query.limit, maxMergedPlants)) / read.length);
    let isProbing = true;
    return scan(query, async ({ after, limit }) => {
      const step = { ...query, limit };
      const probe = new Probe(read, { after, limit });
      if (isProbing) await this.#fill(probe, store);
      const wanted = Math.min(probe.missing, maxMergedPlants);
      if (wanted === 0) return stepOf(probe.found, step, undefined);
      const values = [store, probe.after, maxId, wanted, read, Math.min(plantsEach, wanted)];
      const rows = await this.#cluster.read(store, mergeSql, values);
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

  async #fill(probe: Probe, store: number): Promise<void> {
    while (probe.limit > 0 && probe.after !== undefined)
      probe.add(
        await this.#cluster.read(store, ownedSql, [store, probe.after, maxId, probe.limit]),
      );
  }

  async #scanStep({ store, read }: ReadAccess, query: PlantQuery): Promise<ScanStep> {
    const { after, limit, tag } = query;
    const owner = soleOwner(read);
    const kind = owner === undefined ? 'owners' : 'owner';
    const owners = owner ?? read;
    const [end] = await this.#cluster.read(store, scanStepEndSql[kind], [
      store,
      owners,
      after,
      maxId,
    ]);
    const scannedTo = end?.[0] ?? undefined;
    const range = [store, after, scannedTo ?? maxId, limit, owners, tag];
    return stepOf(await this.#cluster.read(store, scanStepSql[kind], range), query, scannedTo);
  }
}
