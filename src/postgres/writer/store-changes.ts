/**
 * The changes to the plants of one store in a transaction (transaction.ts): it learns what their outcomes depend on,
 * decides them, and then writes plants whose ids are known.
 */
import { changeReachOf, type Caller } from '../../access/access.ts';
import type { Change, ChangeKind, ChangeResults } from '../../plants/changes.ts';
import { keepKeysMs, type StoredKey } from '../../plants/idempotency.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import { maxId, randomId } from '../../plants/ids.ts';
import { idTaken, Problem, storageUnavailable } from '../../problem.ts';
import { noQuotas, type Quotas } from '../../plants/quota.ts';
import type { WriteSettings } from '../../storage.ts';
import { changeSql, type StoreRow } from './statements.ts';
import type { Connection } from '../pool/connection.ts';
import { callerNow, findAgain } from '../tables/grants.ts';
import {
  addToLog,
  logSql,
  removeOld,
  toPlant,
  type LogEntry,
  type PlantRow,
} from '../tables/log.ts';
import { Decisions, keyOf, type NewKey, type Outcome } from './decisions.ts';
import { responseTimeoutMs } from '../pool/timeout.ts';
import { TimeoutError, settled } from '../errors.ts';

/** Groups of fewer changes remove old ones from the log less often: together, they add no more than one removes. */
const smallGroup = 64;
const smallGroupsPerRemoval = 8;

/** A change without an outcome after this time is refused, or has an unknown outcome if it is decided. */
export const outcomeTimeoutMs = 5_500;

export interface QueuedChange {
  readonly change: Change;
  /** When it was queued. */
  readonly sinceMs: number;
  readonly outcome: PromiseWithResolvers<ChangeResults[ChangeKind]>;
  /** Whether it is in a transaction that can be committed. */
  isDecided: boolean;
}

export class StoreChanges {
  readonly store: number;
  /** In the order of arrival, at least one. */
  readonly queued: readonly QueuedChange[];
  readonly #quotas: Quotas;
  readonly #keepChangesMs: number | undefined;
  /** Undefined if the store does not exist, or is locked. */
  #row: StoreRow | undefined;
  /** By id, the plants that the changes name, and those that can be restored. */
  #plants = new Map<number, OwnedPlant>();
  #deleted = new Map<number, OwnedPlant>();
  #keys = new Map<string, StoredKey>();
  /** The number of plants, by owner. */
  #userPlants = new Map<number, number>();
  #locked: Decisions | undefined;
  /** What the changes resolve to if the transaction is committed. */
  readonly outcomes = new Map<QueuedChange, Outcome>();

  constructor(
    store: number,
    queued: readonly QueuedChange[],
    { quotas = noQuotas, keepChangesMs }: WriteSettings,
  ) {
    this.store = store;
    this.queued = queued;
    this.#quotas = quotas;
    this.#keepChangesMs = keepChangesMs;
  }

  /** When the first of its changes was queued. */
  get sinceMs(): number {
    return this.queued[0]?.sinceMs ?? Number.NaN;
  }

  /** The version that the store has if the group is committed, and no other has followed. */
  get version(): number {
    return (this.#row?.[1] ?? 0) + 1;
  }

  /** Locks the store. Unless `canWait`, resolves to false if the store is locked already, or does not exist. */
  async learn(connection: Connection, canWait: boolean): Promise<boolean> {
    const { store } = this;
    this.outcomes.clear();
    for (const queued of this.queued) queued.isDecided = false;
    const changes = this.queued.map(({ change }) => change);
    const ids = [...new Set(changes.flatMap(([, , , id]) => id ?? []))];
    const creators = changes.flatMap(([kind, , owner]) => (kind === 'create' ? owner : []));
    const users = [...new Set(creators)];
    const restores = changes.flatMap(([kind, , , id]) => (kind === 'restore' ? id : []));
    const keys = changes.flatMap((change) => (change[0] === 'create' && change[8]?.[0]) || []);
    const { perUser } = this.#quotas;
    const [[row], plants, deleted, found, counts] = await settled([
      connection.query(canWait ? changeSql.lock : changeSql.lockUnlessLocked, [store]),
      ids.length === 0 ? none : connection.query(changeSql.findPlants, [store, ids]),
      restores.length === 0
        ? none
        : connection.query(logSql.findDeleted, [store, [...new Set(restores)]]),
      keys.length === 0
        ? none
        : connection.query(changeSql.findKeys, [store, keys, Date.now() - keepKeysMs]),
      perUser === undefined || users.length === 0
        ? none
        : // The limit leaves room for the deletes of this group, so that the count stays exact.
          connection.query(changeSql.countPlantsOfUsers, [store, users, perUser + changes.length]),
    ]);
    this.#row = row;
    this.#plants = byId(plants);
    this.#deleted = byId(deleted);
    this.#keys = new Map(
      found.map(([user, key, fingerprint, plant]) => [keyOf(user, key), { fingerprint, plant }]),
    );
    this.#userPlants = new Map(counts);
    return row !== undefined || canWait;
  }

  /** Decides all outcomes. Needs the server only in rare cases. */
  async decide(connection: Connection): Promise<void> {
    const [lastId, , , grants, plants] = this.#row ?? [0, 0, '', undefined, null];
    const changes = await this.#identifyAgain(connection, grants);
    const locked = new Decisions(this.#quotas, this.#keepChangesMs !== 0, {
      lastId,
      randomIds: await this.#drawIds(connection, lastId),
      plants: this.#plants,
      deleted: this.#deleted,
      keys: this.#keys,
      userPlants: await this.#countOwners(connection),
      storePlants: plants ?? (await this.#countPlants(connection)),
    });
    // The rest of the time limit is for the commit.
    const latestMs = performance.now() - responseTimeoutMs;
    for (const [queued, change] of changes) {
      if (queued.sinceMs < latestMs) {
        queued.outcome.reject(storageUnavailable(new TimeoutError()));
      } else {
        queued.isDecided = true;
        this.outcomes.set(queued, locked.apply(change));
      }
    }
    this.#locked = locked;
  }

  /** Sends everything before waiting for a response. `id` becomes the writer in the row of the store. */
  async write(connection: Connection, id: string): Promise<void> {
    if (this.#locked === undefined) return;
    const { store } = this;
    const { state, entries, newKeys } = this.#locked;
    const { created, updated, deleted } = this.#locked.results();
    const { lastId, storePlants } = state;
    const { perStore } = this.#quotas;
    const isCounted = perStore !== undefined && storePlants <= perStore; // above it, the count is a lower bound
    const plants = isCounted ? storePlants : null;
    const row = [store, lastId, this.version, id, plants];
    const [, , inserted] = await settled([
      connection.query(changeSql.updateStore, row),
      deleted.length === 0 ? none : connection.query(changeSql.delete, [store, deleted]),
      created.length === 0 ? none : connection.query(changeSql.create, columnsOf(store, created)),
      updated.length === 0 ? none : connection.query(changeSql.update, columnsOf(store, updated)),
      this.#log(connection, entries),
      newKeys.length === 0 ? none : this.#addKeys(connection, newKeys),
    ]);
    const insertedIds = new Set(inserted.map(([plant]) => plant));
    const foreign = new Set(
      created.map((plant) => plant.id).filter((one) => !insertedIds.has(one)),
    );
    if (foreign.size === 0) return;
    for (const [queued, outcome] of this.outcomes) {
      const plant = typeof outcome === 'object' && 'id' in outcome ? outcome.id : outcome;
      // Another program, which does not lock the row, has inserted the id.
      if (typeof plant === 'number' && foreign.has(plant))
        this.outcomes.set(queued, idTaken(plant));
    }
  }

  /** Adds changes to the log, and removes old ones. */
  async #log(connection: Connection, entries: readonly LogEntry[]): Promise<void> {
    const { store, version } = this;
    const keepMs = this.#keepChangesMs;
    const removes = entries.length >= smallGroup || version % smallGroupsPerRemoval === 0;
    await settled([
      entries.length === 0 ? none : connection.query(...addToLog(store, version, 1, entries)),
      keepMs === undefined || !removes ? none : connection.query(...removeOld(store, keepMs)),
    ]);
  }

  async #addKeys(connection: Connection, keys: readonly NewKey[]): Promise<void> {
    const { store } = this;
    const nowMs = Date.now();
    const columns = [
      keys.map(({ key }) => key),
      keys.map(({ user }) => user),
      keys.map(({ fingerprint }) => fingerprint),
      keys.map(({ plant }) => plant),
    ];
    await settled([
      connection.query(changeSql.removeOldKeys, [store, nowMs - keepKeysMs]),
      connection.query(changeSql.addKeys, [store, ...columns, this.version, nowMs]),
    ]);
  }

  /** The number of plants of each owner who can get one, if there is a quota. */
  async #countOwners(connection: Connection): Promise<Map<number, number>> {
    const { perUser } = this.#quotas;
    const owners = [...this.#deleted.values()].map(({ owner }) => owner);
    const unknown = new Set(owners).difference(this.#userPlants);
    if (perUser === undefined || unknown.size === 0) return this.#userPlants;
    const values = [this.store, [...unknown], perUser + this.queued.length];
    const counts = await connection.query(changeSql.countPlantsOfUsers, values);
    return new Map([...this.#userPlants, ...counts]);
  }

  /**
   * Returns the changes that their callers can still make, with their current reach, and refuses the others: all of them
   * if there is no store.
   */
  async #identifyAgain(
    connection: Connection,
    grants: number | undefined,
  ): Promise<(readonly [QueuedChange, Change])[]> {
    const isCurrent = ({ change }: QueuedChange) => change[4][0] === grants;
    const outdated = this.queued.filter((queued) => !isCurrent(queued));
    const callers = grants === undefined ? [] : outdated.map(({ change }) => change[4]);
    const tokens = new Map(callers.map((by) => [by[1], by]));
    const found = await settled(
      [...tokens.values()].map((by) => connection.query(...findAgain(this.store, by))),
    );
    const rows = new Map([...tokens.keys()].map((token, at) => [token, found[at] ?? []]));
    return this.queued.flatMap((queued) => {
      const { change } = queued;
      if (isCurrent(queued)) return [[queued, change]];
      const [, , , , by] = change;
      const caller = callerNow(this.store, by, rows.get(by[1]) ?? []);
      if (!(caller instanceof Problem)) return [[queued, within(caller, change)]];
      this.outcomes.set(queued, caller);
      return [];
    });
  }

  /** Free ids for all creates without one, if too few are left above `lastId`. */
  async #drawIds(connection: Connection, lastId: number): Promise<number[]> {
    const requested = this.queued.flatMap(({ change: [, , , id] }) => id ?? []);
    const count = this.queued.length - requested.length;
    if (Math.max(lastId, ...requested) + count <= maxId) return [];
    for (;;) {
      const drawn = new Set(Array.from({ length: count }, randomId));
      const taken = await connection.query(changeSql.findPlants, [this.store, [...drawn]]);
      const used = new Set([...requested, ...taken.map(([id]) => id)]);
      const free = drawn.difference(used);
      if (free.size === count) return [...free];
    }
  }

  /** The number of plants, exact unless it is far above the quota. 0 without a quota. */
  async #countPlants(connection: Connection): Promise<number> {
    const { perStore } = this.#quotas;
    if (perStore === undefined) return 0;
    const limit = perStore + 1 + this.queued.length; // exact even after the deletes of this group
    const [row] = await connection.query(changeSql.countPlantsOfStore, [this.store, limit]);
    return row?.[0] ?? 0;
  }
}

const none = Promise.resolve([]);

function byId(rows: readonly PlantRow[]): Map<number, OwnedPlant> {
  return new Map(rows.map((row) => [row[0], toPlant(row)]));
}

/** The parameters of a statement that inserts plants. */
function columnsOf(store: number, plants: readonly OwnedPlant[]): readonly unknown[] {
  return [
    store,
    plants.map(({ id }) => id),
    plants.map(({ owner }) => owner),
    plants.map(({ tag }) => tag),
    plants.map(({ name }) => name),
  ];
}

/** The change with the reach that its caller has now. */
function within(caller: Caller, change: Change): Change {
  const [kind, store, , id, ...rest] = change;
  return kind === 'create'
    ? change
    : ([kind, store, changeReachOf(caller), id, ...rest] as unknown as Change); // the same kind
}
