/**
 * Runs the statements of `sql/` in PostgreSQL, and the changes to plants. What locks a store goes through the writer of its
 * server.
 */
import type { Change, ChangeResults } from '../plants/changes.ts';
import { namedWrite } from '../sql/named-writes.ts';
import { outcomeOf, type Engine, type Write } from '../sql/write.ts';
import type { WriteSettings } from '../storage.ts';
import type { Pool } from './pool/pool.ts';
import type { Servers } from './servers.ts';
import { ensureStore, findStore } from './tables/names.ts';
import { Writer } from './writer/writer.ts';

export interface PostgresEngine extends Engine {
  change<C extends Change>(change: C): Promise<ChangeResults[C['kind']]>;
  /** Waits for all writes. */
  close(): Promise<void>;
}

export function openEngine(servers: Servers, settings: WriteSettings): PostgresEngine {
  /** One for each server, so that a server that does not respond does not delay the others. */
  const writers = new Map<Pool, Writer>();

  /** Resolves to the result of the write. */
  async function writeLocked<Result>(store: number, write: Change | Write): Promise<Result> {
    const server = await servers.ofStore(store);
    const writer =
      writers.get(server) ?? new Writer(server, settings, () => servers.isDirect(server));
    writers.set(server, writer);
    return writer.write(store, write) as Promise<Result>; // callers name that of their write
  }

  return {
    findStore: (name) => findStore(servers, name),
    ensureStore: (name) => ensureStore(servers, name),

    /** With a `turn`, the read is a step of a scan. */
    async read(store, statement, values, turn) {
      if (store === undefined) return (await servers.ofStore(store)).read(statement, values);
      const read = () => servers.read(store, statement, values, turn);
      return turn === undefined ? read() : servers.placeOf(store).scanSteps.run(turn, read);
    },

    change: (change) => writeLocked(change.store, change),

    async write(name, ...args) {
      const write = namedWrite(name, ...args);
      const { store, withoutLock = false } = write;
      if (store !== undefined && !withoutLock) return writeLocked(store, write);
      const server = await servers.ofStore(store);
      const rows = await Promise.all(write.reads.map((query) => server.read(...query)));
      const { result, writes } = outcomeOf(write, rows, 0);
      if (writes.length > 0) await server.transact(...writes);
      return result;
    },

    async close() {
      await Promise.all(writers.values().map((writer) => writer.close()));
    },
  };
}
