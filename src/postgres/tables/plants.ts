/**
 * The plants of PostgreSQL: finds and lists them here, and passes changes to the writer of their server.
 */
import { reaches, userKey, type Caller, type ReadAccess } from '../../access/access.ts';
import { createdPlant, creationOf } from '../../plants/changes.ts';
import { maxId } from '../../plants/ids.ts';
import {
  isDense,
  listKind,
  maxScannedPlants,
  minScannedOwners,
  pageOf,
  scan,
  type ScanStep,
} from '../../plants/lists.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../../plants/plant-storage.ts';
import type { NewPlant, Plant } from '../../plants/plant.ts';
import type { Quotas } from '../../plants/quota.ts';
import {
  findOwnerSql,
  findSql,
  listSql,
  listValues,
  inReachSql,
  mergeSql,
  scanStepEndSql,
  scanStepSql,
} from './plant-statements.ts';
import type { Cluster } from '../citus/cluster.ts';
import type { Row, Statement } from '../pool/connection.ts';
import type { Pool } from '../pool/pool.ts';
import { Writer } from '../writer/writer.ts';

export class Plants implements PlantStorage {
  readonly #cluster: Cluster;
  readonly #quotas: Quotas;
  /** One for each server, so that one that does not respond delays no others. */
  readonly #writers = new Map<Pool, Writer>();

  constructor(cluster: Cluster, quotas: Quotas) {
    this.#cluster = cluster;
    this.#quotas = quotas;
  }

  async create(caller: Caller, plant: NewPlant): Promise<Plant> {
    const creation = creationOf(caller, plant);
    const writer = await this.#writerOf(caller.store);
    return createdPlant(creation, await writer.write(creation));
  }

  async delete({ store, write, identified }: Caller, id: number): Promise<boolean> {
    const writer = await this.#writerOf(store);
    return writer.write(['delete', store, write, id, identified]);
  }

  async find(caller: ReadAccess, id: number): Promise<Plant | undefined> {
    const [row] = await this.#query(caller, findSql, [caller.store, id]);
    if (row === undefined) return undefined;
    const [name, tag, owner] = row;
    return reaches(caller.read, owner) ? { id, name, tag } : undefined;
  }

  async findOwner(store: number, id: number): Promise<string | undefined> {
    return (await this.#cluster.read(store, findOwnerSql, [store, id]))[0]?.[0];
  }

  async list(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const kind = listKind(caller.read, query);
    if (kind === 'scan') return scan(query, (left) => this.#scanStep(caller, left));
    if (kind === 'owners') return this.#listOwners(caller, query);
    const values = listValues(kind, caller, query);
    return pageOf(await this.#query(caller, listSql[kind], values), query);
  }

  /** Waits for all changes. */
  async close(): Promise<void> {
    await Promise.all(this.#writers.values().map((writer) => writer.close()));
  }

  async #writerOf(store: number): Promise<Writer> {
    const server = await this.#cluster.ofStore(store);
    const known = this.#writers.get(server);
    if (known !== undefined) return known;
    const writer = new Writer(server, this.#quotas, () => this.#cluster.isDirect(server));
    this.#writers.set(server, writer);
    return writer;
  }

  #query<R extends Row>(
    caller: ReadAccess,
    statement: Statement<R>,
    values: readonly unknown[],
  ): Promise<R[]> {
    return this.#cluster.read(caller.store, statement, values, userKey(caller));
  }

  /** Each step searches the next plants of the store for those in reach. Where they are few, it merges those of each owner. */
  async #listOwners(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    let isSearching = caller.read.length >= minScannedOwners;
    // Enough if the owners have about as many plants. If one of them has most, the next steps read more of each.
    let plantsEach = 8 + Math.ceil((2 * query.limit) / caller.read.length);
    return scan(query, async ({ after, limit }) => {
      const wanted = limit + 1;
      if (isSearching) {
        const step = await this.#search(caller, after, wanted);
        isSearching = isDense(step.rows.length, maxScannedPlants);
        return step;
      }
      const step = await this.#merge(caller, after, wanted, plantsEach);
      const { rows, scannedTo = maxId } = step;
      if (rows.length < wanted / 2) plantsEach *= 2;
      isSearching = isDense(rows.length, scannedTo - after); // a plant for each id, at most
      return step;
    });
  }

  async #search(caller: ReadAccess, after: number, wanted: number): Promise<ScanStep> {
    const rows = await this.#query(caller, inReachSql, [caller.store, after, wanted, caller.read]);
    const [last, , , , nth] = rows.at(-1) ?? [];
    return {
      rows: rows.filter(([, , , isInReach]) => isInReach),
      scannedTo: nth === maxScannedPlants ? last : undefined,
    };
  }

  async #merge(
    caller: ReadAccess,
    after: number,
    wanted: number,
    plantsEach: number,
  ): Promise<ScanStep> {
    const { store, read } = caller;
    const values = [store, after, maxId, wanted, read, Math.min(plantsEach, wanted)];
    const merged = await this.#query(caller, mergeSql, values);
    const completeTo = merged[0]?.[3] ?? maxId;
    const rows = merged.filter(([id]) => id <= completeTo);
    const isEnd = rows.length < wanted && completeTo === maxId;
    return { rows, scannedTo: isEnd ? undefined : rows.at(-1)?.[0] };
  }

  async #scanStep(caller: ReadAccess, query: PlantQuery): Promise<ScanStep> {
    const { store, read } = caller;
    const { after, limit, tag } = query;
    const [end] = await this.#query(caller, scanStepEndSql, [store, read, after, maxId]);
    const scannedTo = end?.[0] ?? undefined;
    const range = [store, after, scannedTo ?? maxId, limit, read, tag];
    return { rows: await this.#query(caller, scanStepSql, range), scannedTo };
  }
}
