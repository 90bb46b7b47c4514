/**
 * The writes to one store in a transaction (transaction.ts): changes to plants, or one write of `sql/`. The group learns
 * what their outcomes depend on, decides them, and then writes.
 */
import type { Change } from '../../plants/changes.ts';
import { Problem, storageUnavailable } from '../../problem.ts';
import { callerNow, findAgain } from '../../sql/grants.ts';
import type { Query, Row } from '../../sql/statement.ts';
import { outcomeOf, type Write } from '../../sql/write.ts';
import type { WriteSettings } from '../../storage.ts';
import { settled, TimeoutError } from '../errors.ts';
import type { Connection } from '../pool/connection.ts';
import { responseTimeoutMs } from '../pool/timeout.ts';
import { newGrantsVersion } from '../tables/grants.ts';
import { addToLog } from '../tables/log.ts';
import { changeSql, noStore, storeRowOf, type StoreRow } from './statements.ts';
import { storeChanges } from './store-changes.ts';

/** A write without an outcome after this time is refused, or has an unknown outcome if it is decided. */
export const outcomeTimeoutMs = 5_500;

export interface QueuedWrite {
  readonly write: Change | Write;
  /** When it was queued. */
  readonly sinceMs: number;
  /** Its result. */
  readonly outcome: PromiseWithResolvers<unknown>;
  /** Whether it is in a transaction that can be committed. */
  isDecided: boolean;
}

export function isChange(write: Change | Write): write is Change {
  return 'kind' in write;
}

/** What one attempt of a transaction does with the writes of a group. */
export interface Attempt {
  /** Sends what it reads, behind the lock of the store. */
  read(connection: Connection): Promise<unknown>;
  /** Gets the row of the store, and reads what only few groups need. */
  complete(row: StoreRow, connection: Connection): Promise<void>;
  /** Decides the write at this place, after those before it. Throws the Problem of one that is refused. */
  decide(at: number): unknown;
  /** The row of the store afterwards, and the statements for the rest. */
  effect(): StoreEffect;
}

export interface StoreEffect {
  readonly row: StoreRow;
  readonly statements: readonly Query[];
}

export class Group {
  readonly store: number;
  /** In the order of arrival, at least one. */
  readonly queued: readonly QueuedWrite[];
  readonly #settings: WriteSettings;
  /** Whether an earlier attempt has failed, or found the store locked. */
  #isRepeated = false;
  #attempt: Attempt | undefined;
  #before = noStore;
  #effect: StoreEffect = { row: noStore, statements: [] };
  /** The results of the writes if the transaction is committed, or why they are refused. */
  readonly outcomes = new Map<QueuedWrite, unknown>();

  constructor(store: number, queued: readonly QueuedWrite[], settings: WriteSettings) {
    this.store = store;
    this.queued = queued;
    this.#settings = settings;
  }

  /** When the first of its writes was queued. */
  get sinceMs(): number {
    return this.queued[0]?.sinceMs ?? Number.NaN;
  }

  /** The position of the store if the group is committed, and no other has followed. */
  get position(): number {
    return this.#effect.row.position;
  }

  /** Without a change, the row of the store keeps its writer, whose outcome can still be asked. */
  get hasChanged(): boolean {
    return this.position !== this.#before.position;
  }

  /** Locks the store. Unless `canWait`, resolves to false if the store is locked already, or does not exist. */
  async learn(connection: Connection, canWait: boolean): Promise<boolean> {
    this.outcomes.clear();
    for (const queued of this.queued) queued.isDecided = false;
    const lock = canWait ? changeSql.lock : changeSql.lockUnlessLocked;
    this.#attempt = this.#newAttempt();
    this.#isRepeated = true;
    const [[row]] = await settled([
      connection.query(lock, [this.store]),
      this.#attempt.read(connection),
    ]);
    this.#before = row === undefined ? noStore : storeRowOf(row);
    return row !== undefined || canWait;
  }

  #newAttempt(): Attempt {
    const changes: Change[] = [];
    for (const { write } of this.queued) {
      if (!isChange(write)) return storeWrite(this.store, write, this.#settings);
      changes.push(write);
    }
    return storeChanges(this.store, changes, this.#settings, this.#isRepeated);
  }

  /** Decides all outcomes. Needs the server only in rare cases. */
  async decide(connection: Connection): Promise<void> {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    await attempt.complete(this.#before, connection);
    // The rest of the time limit is for the commit.
    const latestMs = performance.now() - responseTimeoutMs;
    for (const [at, queued] of this.queued.entries()) {
      if (queued.sinceMs < latestMs) {
        queued.outcome.reject(storageUnavailable(new TimeoutError()));
      } else {
        queued.isDecided = true;
        this.outcomes.set(queued, decideOne(attempt, at));
      }
    }
    this.#effect = attempt.effect();
  }

  /** Sends everything before waiting for a response. With a change, `id` becomes the writer in the row of the store. */
  async write(connection: Connection, id: string): Promise<void> {
    const { row, statements } = this.#effect;
    const { lastId, position, grants, plants } = row;
    const isNewCount = plants !== null && plants !== this.#before.plants; // the next group need not count
    const writer = this.hasChanged ? id : row.writer;
    const values = [this.store, lastId, position, writer, grants, plants];
    const update: Query[] = this.hasChanged || isNewCount ? [[changeSql.updateStore, values]] : [];
    await settled([...update, ...statements].map((query) => connection.query(...query)));
  }
}

function decideOne(attempt: Attempt, at: number): unknown {
  try {
    return attempt.decide(at);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/** A write of `sql/`. */
function storeWrite(store: number, write: Write, { keepChangesMs }: WriteSettings): Attempt {
  const { by, reads } = write;
  let callers: readonly Row[] = [];
  let rows: readonly (readonly Row[])[] = [];
  let effect: StoreEffect = { row: noStore, statements: [] };
  return {
    async read(connection) {
      [callers, rows] = await settled([
        by === undefined ? Promise.resolve([]) : connection.query(...findAgain(store, by)),
        settled(reads.map((query) => connection.query(...query))),
      ]);
    },

    async complete(row) {
      effect = { row, statements: [] };
    },

    decide() {
      if (by !== undefined) callerNow(store, by, callers);
      const { row } = effect;
      const { result, writes, entries } = outcomeOf(write, rows, row.position);
      const position = row.position + entries.length;
      const changesGrants = entries.some(({ plant }) => plant === undefined);
      const grants = changesGrants ? newGrantsVersion() : row.grants;
      const plants = entries.every(({ plant }) => plant === undefined) ? row.plants : null;
      const log = keepChangesMs === 0 ? [] : addToLog(store, entries);
      effect = { row: { ...row, position, grants, plants }, statements: [...writes, ...log] };
      return result;
    },

    effect: () => effect,
  };
}
