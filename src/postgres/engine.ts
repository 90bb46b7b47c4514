/**
 * Runs the statements of `sql/` in PostgreSQL: a write in one transaction of two round trips.
 */
import type { LogEntry } from '../log/change-log.ts';
import { Problem } from '../problem.ts';
import { sql, type Query, type Row, type Statement } from '../sql/statement.ts';
import type { Engine, ResultOf, Write } from '../sql/write.ts';
import { writes, type Writes } from '../sql/named-writes.ts';
import type { Servers } from './servers.ts';
import type { Pool } from './pool/pool.ts';
import { callerNow, changeGrantsVersion, findAgain } from './tables/grants.ts';
import { addToLog } from './tables/log.ts';
import { ensureStore, findStore } from './tables/names.ts';

export const engineSql = {
  // Like a group of changes, and before anything else: what the next statements read stays as it is.
  lock: sql<readonly [position: number]>`
    SELECT position FROM plant_store.stores WHERE store = $1 FOR UPDATE`,
  // Not its writer: whether the last group was committed can still be asked.
  raise: sql`UPDATE plant_store.stores SET position = $2 WHERE store = $1`,
};

export class PostgresEngine implements Engine {
  readonly #servers: Servers;
  readonly #hasLog: boolean;

  constructor(servers: Servers, hasLog: boolean) {
    this.#servers = servers;
    this.#hasLog = hasLog;
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

  async write<Name extends keyof Writes>(
    name: Name,
    ...args: Parameters<Writes[Name]>
  ): Promise<ResultOf<Name>> {
    // The type of the arguments has checked this combination, which the compiler cannot follow here.
    const write = (writes[name] as (...values: readonly unknown[]) => Write<ResultOf<Name>>)(
      ...args,
    );
    const { store, needsLock } = write;
    const server = await (store === undefined
      ? this.#servers.anyServer()
      : this.#servers.ofStore(store));
    return store === undefined || !needsLock
      ? writeUnlocked(server, write)
      : this.#lockAndWrite(server, store, write);
  }

  async #lockAndWrite<Result>(server: Pool, store: number, write: Write<Result>): Promise<Result> {
    const { by, request, reads, decide, canRepeat } = write;
    const again = by === undefined ? [] : [findAgain(store, by)];
    const outcome: { result?: Result } = {};
    const first: Query[] = [[engineSql.lock, [store]], ...again, ...reads];
    const then = ([locked, ...rows]: Row[][]): readonly Query[] | Problem => {
      const [position] = (locked?.[0] ?? [0]) as readonly [number]; // of `lock`
      if (by !== undefined) {
        const caller = callerNow(store, by, rows.shift() ?? []);
        if (caller instanceof Problem) return caller;
      }
      const { result, writes: statements = [], entries = [] } = decide(rows, position);
      outcome.result = result;
      const log = entries.map((entry, at): LogEntry => ({
        ...entry,
        position: position + 1 + at,
        by,
        request,
      }));
      const changesGrants = entries.some(({ plant }) => plant === undefined);
      return [
        ...(changesGrants ? [changeGrantsVersion(store)] : []),
        ...statements,
        ...(log.length > 0 ? [raise(store, position + log.length)] : []),
        ...(this.#hasLog ? addToLog(store, log) : []),
      ];
    };
    await server.transactInTwo(first, then, { canRepeat });
    return outcome.result as Result; // `then` has run
  }
}

async function writeUnlocked<Result>(
  server: Pool,
  { reads, decide }: Write<Result>,
): Promise<Result> {
  const rows = await Promise.all(reads.map((query) => server.read(...query)));
  const { result, writes: statements = [] } = decide(rows, 0);
  if (statements.length > 0) await server.transact(...statements);
  return result;
}

function raise(store: number, position: number): Query {
  return [engineSql.raise, [store, position]];
}
