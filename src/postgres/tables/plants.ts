/**
 * The plants of PostgreSQL: finds them here, and passes changes to the writer of their server.
 */
import { reaches, userKey, type Caller, type ReadAccess } from '../../access/access.ts';
import { createdPlant, creationOf } from '../../plants/changes.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../../plants/plant-storage.ts';
import type { NewPlant, Plant } from '../../plants/plant.ts';
import type { Quotas } from '../../plants/quota.ts';
import { listPlants } from './plant-lists.ts';
import { findOwnerSql, findSql } from './plant-statements.ts';
import type { Cluster } from '../citus/cluster.ts';
import type { Pool } from '../pool/pool.ts';
import { Writer } from '../writer/writer.ts';

export class Plants implements PlantStorage {
  readonly #cluster: Cluster;
  readonly #quotas: Quotas;
  /** One for each server, so that a server that does not respond does not delay the others. */
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
    const [row] = await this.#cluster.read(
      caller.store,
      findSql,
      [caller.store, id],
      userKey(caller),
    );
    if (row === undefined) return undefined;
    const [name, tag, owner] = row;
    return reaches(caller.read, owner) ? { id, name, tag } : undefined;
  }

  async findOwner(store: number, id: number): Promise<string | undefined> {
    return (await this.#cluster.read(store, findOwnerSql, [store, id]))[0]?.[0];
  }

  list(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    return listPlants(this.#cluster, caller, query);
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
}
