/**
 * The plants of PostgreSQL: finds them here, and passes changes to the writer of their server.
 */
import { reaches, userKey, type ReadAccess } from '../../access/access.ts';
import {
  createdPlant,
  creationOf,
  deletionOf,
  restorationOf,
  updateOf,
  type Change,
  type ResultOfChange,
} from '../../plants/changes.ts';
import type {
  OwnedPlant,
  PlantPage,
  PlantQuery,
  PlantStorage,
} from '../../plants/plant-storage.ts';
import { readPage } from './plant-lists.ts';
import { findOwnerSql, findSql } from './plant-statements.ts';
import type { Cluster } from '../citus/cluster.ts';
import type { Pool } from '../pool/pool.ts';
import type { UserStorage } from '../../access/user-storage.ts';
import type { WriteSettings } from '../../storage.ts';
import { Writer } from '../writer/writer.ts';

export class Plants implements PlantStorage {
  readonly #cluster: Cluster;
  readonly #settings: WriteSettings;
  readonly #users: UserStorage;
  /** One for each server, so that a server that does not respond does not delay the others. */
  readonly #writers = new Map<Pool, Writer>();

  constructor(cluster: Cluster, settings: WriteSettings, users: UserStorage) {
    this.#cluster = cluster;
    this.#settings = settings;
    this.#users = users;
  }

  readonly create: PlantStorage['create'] = async (...args) => {
    const creation = creationOf(...args);
    return createdPlant(creation, await this.#write(creation));
  };

  readonly update: PlantStorage['update'] = async (...args) => this.#write(updateOf(...args));
  readonly delete: PlantStorage['delete'] = async (...args) => this.#write(deletionOf(...args));
  readonly restore: PlantStorage['restore'] = async (...args) =>
    this.#write(restorationOf(...args));

  async #write<C extends Change>(change: C): Promise<ResultOfChange<C>> {
    const writer = await this.#writerOf(change.store);
    return writer.write(change);
  }

  async find(caller: ReadAccess, id: number): Promise<OwnedPlant | undefined> {
    const [row] = await this.#cluster.read(
      caller.store,
      findSql,
      [caller.store, id],
      userKey(caller),
    );
    if (row === undefined) return undefined;
    const [name, tag, owner] = row;
    return reaches(caller.read, owner) ? { id, name, tag, owner } : undefined;
  }

  async findOwner(store: number, id: number): Promise<string | undefined> {
    return (await this.#cluster.read(store, findOwnerSql, [store, id]))[0]?.[0];
  }

  list(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    return readPage(this.#cluster, caller, query, this.#users);
  }

  /** Waits for all changes. */
  async close(): Promise<void> {
    await Promise.all(this.#writers.values().map((writer) => writer.close()));
  }

  async #writerOf(store: number): Promise<Writer> {
    const server = await this.#cluster.ofStore(store);
    const known = this.#writers.get(server);
    if (known !== undefined) return known;
    const writer = new Writer(server, this.#settings, () => this.#cluster.isDirect(server));
    this.#writers.set(server, writer);
    return writer;
  }
}
