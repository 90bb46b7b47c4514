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
import { plantOf } from '../../plants/fields.ts';
import type {
  OwnedPlant,
  PlantPage,
  PlantQuery,
  PlantStorage,
} from '../../plants/plant-storage.ts';
import { readPage } from './plant-lists.ts';
import { findSql } from './plant-statements.ts';
import type { Servers } from '../servers.ts';
import type { Pool } from '../pool/pool.ts';
import type { UserStorage } from '../../access/user-storage.ts';
import type { WriteSettings } from '../../storage.ts';
import { Writer } from '../writer/writer.ts';

export class Plants implements PlantStorage {
  readonly #servers: Servers;
  readonly #settings: WriteSettings;
  readonly #users: UserStorage;
  /** One for each server, so that a server that does not respond does not delay the others. */
  readonly #writers = new Map<Pool, Writer>();

  constructor(servers: Servers, settings: WriteSettings, users: UserStorage) {
    this.#servers = servers;
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
    const [row] = await this.#servers.read(
      caller.store,
      findSql,
      [caller.store, id],
      userKey(caller),
    );
    if (row === undefined) return undefined;
    const [, owner, ...texts] = row;
    return reaches(caller.read, owner) ? plantOf(id, owner, texts) : undefined;
  }

  list(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    return readPage(this.#servers, caller, query, this.#users);
  }

  /** Waits for all changes. */
  async close(): Promise<void> {
    await Promise.all(this.#writers.values().map((writer) => writer.close()));
  }

  async #writerOf(store: number): Promise<Writer> {
    const server = await this.#servers.ofStore(store);
    const known = this.#writers.get(server);
    if (known !== undefined) return known;
    const writer = new Writer(server, this.#settings, () => this.#servers.isDirect(server));
    this.#writers.set(server, writer);
    return writer;
  }
}
