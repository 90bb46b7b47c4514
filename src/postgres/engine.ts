/**
 * Runs the statements of `sql/` in PostgreSQL, and the changes to plants. What locks a store goes through the writer of its
 * server.
 */
import type { Change, ResultOfChange } from '../plants/changes.ts';
import { namedWrite, type Writes } from '../sql/named-writes.ts';
import type { Row, Statement } from '../sql/statement.ts';
import { outcomeOf, type Engine, type ResultOf, type Write } from '../sql/write.ts';
import type { WriteSettings } from '../storage.ts';
import type { Pool } from './pool/pool.ts';
import type { Servers } from './servers.ts';
import { ensureStore, findStore } from './tables/names.ts';
import { Writer } from './writer/writer.ts';

export class PostgresEngine implements Engine {
  readonly #servers: Servers;
  readonly #settings: WriteSettings;
  /** One for each server, so that a server that does not respond does not delay the others. */
  readonly #writers = new Map<Pool, Writer>();

  constructor(servers: Servers, settings: WriteSettings) {
    this.#servers = servers;
    this.#settings = settings;
  }

  findStore(name: string): Promise<number | undefined> {
    return findStore(this.#servers, name);
  }

  ensureStore(name: string): Promise<number> {
    return ensureStore(this.#servers, name);
  }

  /** With a `turn`, the read is a step of a scan. */
  async read<R extends Row>(
    store: number | undefined,
    statement: Statement<R>,
    values: readonly unknown[],
    turn?: string,
  ): Promise<R[]> {
    if (store === undefined) return (await this.#servers.anyServer()).read(statement, values);
    const read = () => this.#servers.read(store, statement, values, turn);
    return turn === undefined ? read() : this.#servers.placeOf(store).scanSteps.run(turn, read);
  }

  async change<C extends Change>(change: C): Promise<ResultOfChange<C>> {
    const result = await this.#writeLocked(change.store, change);
    return result as ResultOfChange<C>; // of this change
  }

  async write<Name extends keyof Writes>(
    name: Name,
    ...args: Parameters<Writes[Name]>
  ): Promise<ResultOf<Name>> {
    const write = namedWrite(name, ...args);
    const { store, needsLock } = write;
    if (store !== undefined && needsLock) {
      return (await this.#writeLocked(store, write)) as ResultOf<Name>; // of this write
    }
    const server = await (store === undefined
      ? this.#servers.anyServer()
      : this.#servers.ofStore(store));
    const rows = await Promise.all(write.reads.map((query) => server.read(...query)));
    const { result, writes } = outcomeOf(write, rows, 0);
    if (writes.length > 0) await server.transact(...writes);
    return result;
  }

  async #writeLocked(store: number, write: Change | Write): Promise<unknown> {
    const server = await this.#servers.ofStore(store);
    const writer =
      this.#writers.get(server) ??
      new Writer(server, this.#settings, () => this.#servers.isDirect(server));
    this.#writers.set(server, writer);
    return writer.write(store, write);
  }

  /** Waits for all writes. */
  async close(): Promise<void> {
    await Promise.all(this.#writers.values().map((writer) => writer.close()));
  }
}
