/**
 * The plants of PostgreSQL: finds them here, and passes changes to the writer of their server.
 */
import { reaches, userKey } from '../../access/access.ts';
import { changesBy } from '../../plants/changes.ts';
import { plantOf } from '../../plants/fields.ts';
import type { PlantStorage } from '../../plants/plant-storage.ts';
import { readPage } from './plant-lists.ts';
import { findSql } from './plant-statements.ts';
import type { Servers } from '../servers.ts';
import type { Pool } from '../pool/pool.ts';
import type { UserStorage } from '../../access/user-storage.ts';
import type { WriteSettings } from '../../storage.ts';
import { Writer } from '../writer/writer.ts';

export function openPlants(servers: Servers, settings: WriteSettings, users: UserStorage) {
  /** One for each server, so that a server that does not respond does not delay the others. */
  const writers = new Map<Pool, Writer>();

  async function writerOf(store: number): Promise<Writer> {
    const server = await servers.ofStore(store);
    const known = writers.get(server);
    if (known !== undefined) return known;
    const writer = new Writer(server, settings, () => servers.isDirect(server));
    writers.set(server, writer);
    return writer;
  }

  return {
    ...changesBy(async (change) => (await writerOf(change.store)).write(change)),

    async find(caller, id) {
      const { store, read } = caller;
      const [row] = await servers.read(store, findSql, [store, id], userKey(caller));
      if (row === undefined) return undefined;
      const [, owner, ...texts] = row;
      return reaches(read, owner) ? plantOf(id, owner, texts) : undefined;
    },

    list: (caller, query) => readPage(servers, caller, query, users),

    /** Waits for all changes. */
    async close() {
      await Promise.all(writers.values().map((writer) => writer.close()));
    },
  } satisfies PlantStorage & { close: () => Promise<void> };
}
