/**
 * The changes to the plants of one store in a transaction (transaction.ts): it learns what their outcomes depend on,
 * decides them, and then writes plants whose ids are known.
 */
import { changeReachOf, type ChangeReach } from '../../access/access.ts';
import type { Change, ChangeKind, ChangeResults } from '../../plants/changes.ts';
import { decide, type DeletionInLog, type Rules, type StoredPlant } from '../../plants/decide.ts';
import { keptSince } from '../../log/change-log.ts';
import { plantOf, textFields, type PlantRow } from '../../plants/fields.ts';
import { keepKeysMs, type StoredKey } from '../../plants/idempotency.ts';
import { maxId, randomId } from '../../plants/ids.ts';
import { Problem, storageUnavailable } from '../../problem.ts';
import { noQuotas } from '../../plants/quota.ts';
import type { WriteSettings } from '../../storage.ts';
import { changeSql, type StoreRow } from './statements.ts';
import type { Connection } from '../pool/connection.ts';
import { callerNow, findAgain } from '../tables/grants.ts';
import { deletionOf, logSql, type DeletionRow } from '../../sql/log.ts';
import { addToLog } from '../tables/log.ts';
import { GroupFacts, keyOf } from './group-facts.ts';
import { responseTimeoutMs } from '../pool/timeout.ts';
import { TimeoutError, settled } from '../errors.ts';

/** A change without an outcome after this time is refused, or has an unknown outcome if it is decided. */
export const outcomeTimeoutMs = 5_500;

/** The result of a change, or why it is refused. */
type Outcome = ChangeResults[ChangeKind] | Problem;

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
  readonly #rules: Rules;
  readonly #keepChangesMs: number | undefined;
  /** Undefined if the store does not exist, or is locked. */
  #row: StoreRow | undefined;
  /** The largest id of a plant if `#isRepeated`: another program can have inserted it. */
  #largestId = 0;
  /** By id, the plants that the changes name, and the deletions of those that are gone. */
  #plants = new Map<number, StoredPlant>();
  #deletions = new Map<number, DeletionInLog>();
  #keys = new Map<string, StoredKey>();
  /** The number of plants, by owner. */
  #userPlants = new Map<number, number>();
  #facts: GroupFacts | undefined;
  /** Whether an earlier attempt has failed, or found the store locked. */
  #isRepeated = false;
  /** What the changes resolve to if the transaction is committed. */
  readonly outcomes = new Map<QueuedChange, Outcome>();

  constructor(
    store: number,
    queued: readonly QueuedChange[],
    { quotas = noQuotas, keepChangesMs }: WriteSettings,
  ) {
    this.store = store;
    this.queued = queued;
    this.#rules = { quotas, hasLog: keepChangesMs !== 0 };
    this.#keepChangesMs = keepChangesMs;
  }

  /** When the first of its changes was queued. */
  get sinceMs(): number {
    return this.queued[0]?.sinceMs ?? Number.NaN;
  }

  /** The position of the store if the group is committed, and no other has followed. */
  get position(): number {
    return this.#facts?.position ?? 0;
  }

  /** Without a change, the row of the store keeps its writer, whose outcome can still be asked. */
  get hasChanged(): boolean {
    return this.position !== (this.#row?.[1] ?? 0);
  }

  /** Locks the store. Unless `canWait`, resolves to false if the store is locked already, or does not exist. */
  async learn(connection: Connection, canWait: boolean): Promise<boolean> {
    const { store } = this;
    this.outcomes.clear();
    for (const queued of this.queued) queued.isDecided = false;
    const changes = this.queued.map(({ change }) => change);
    const ids = [...new Set(changes.flatMap(({ id }) => id ?? []))];
    const creates = changes.filter((change) => change.kind === 'create');
    const users = [...new Set(creates.map(({ owner }) => owner))];
    const keys = creates.flatMap(({ key }) => key?.[0] ?? []);
    const added = changes.flatMap(({ kind, id }) =>
      kind === 'create' || kind === 'restore' ? (id ?? []) : [],
    );
    const { perUser } = this.#rules.quotas;
    const [[row], plants, deletions, found, counts, [largest]] = await settled([
      connection.query(canWait ? changeSql.lock : changeSql.lockUnlessLocked, [store]),
      ids.length === 0 ? none : connection.query(changeSql.findPlants, [store, ids]),
      added.length === 0
        ? none
        : connection.query(logSql.findDeletions, [store, [...new Set(added)]]),
      keys.length === 0
        ? none
        : connection.query(changeSql.findKeys, [store, keys, Date.now() - keepKeysMs]),
      perUser === undefined || users.length === 0
        ? none
        : // The limit leaves room for the deletes of this group, so that the count stays exact.
          connection.query(changeSql.countPlantsOfUsers, [store, users, perUser + changes.length]),
      this.#isRepeated ? connection.query(changeSql.findLargest, [store]) : none,
    ]);
    this.#isRepeated = true;
    this.#largestId = largest?.[0] ?? 0;
    this.#row = row;
    this.#plants = byId(plants);
    this.#deletions = this.#deletionsOf(deletions);
    this.#keys = new Map(
      found.map(([user, key, fingerprint, plant]) => [keyOf(user, key), { fingerprint, plant }]),
    );
    this.#userPlants = new Map(counts);
    return row !== undefined || canWait;
  }

  /** Decides all outcomes. Needs the server only in rare cases. */
  async decide(connection: Connection): Promise<void> {
    const [storedLastId, position, , grants, plants] = this.#row ?? [0, 0, '', undefined, null];
    const lastId = Math.max(storedLastId, this.#largestId, ...this.#plants.keys());
    const facts = new GroupFacts({
      lastId,
      position,
      randomIds: await this.#drawIds(connection, lastId),
      reaches: await this.#identifyAgain(connection, grants),
      plants: this.#plants,
      deletions: this.#deletions,
      keys: this.#keys,
      userPlants: await this.#countOwners(connection),
      storePlants: plants ?? (await this.#countPlants(connection)),
    });
    // The rest of the time limit is for the commit.
    const latestMs = performance.now() - responseTimeoutMs;
    for (const queued of this.queued) {
      if (queued.sinceMs < latestMs) {
        queued.outcome.reject(storageUnavailable(new TimeoutError()));
      } else {
        queued.isDecided = true;
        this.outcomes.set(queued, outcomeOf(queued.change, facts, this.#rules));
      }
    }
    this.#facts = facts;
  }

  /** Sends everything before waiting for a response. With a change, `id` becomes the writer in the row of the store. */
  async write(connection: Connection, id: string): Promise<void> {
    if (this.#facts === undefined) return;
    const { store } = this;
    const facts = this.#facts;
    const { lastId, position, storePlants, entries, endedDeletions, newKeys } = facts;
    const { created, updated, deleted } = facts.results();
    const { perStore } = this.#rules.quotas;
    const isCounted = perStore !== undefined && storePlants <= perStore; // above it, the count is a lower bound
    const plants = isCounted ? storePlants : null;
    const [, , writer, , plantsBefore] = this.#row ?? [0, 0, '', 0, null];
    const row = [store, lastId, position, this.hasChanged ? id : writer, plants];
    const isNewCount = plants !== null && plants !== plantsBefore; // the next group need not count
    await settled([
      this.hasChanged || isNewCount ? connection.query(changeSql.updateStore, row) : none,
      deleted.length === 0 ? none : connection.query(changeSql.delete, [store, deleted]),
      created.length === 0 ? none : connection.query(changeSql.create, columnsOf(store, created)),
      updated.length === 0 ? none : connection.query(changeSql.update, columnsOf(store, updated)),
      settled(addToLog(store, entries, endedDeletions).map((one) => connection.query(...one))),
      newKeys.length === 0 ? none : this.#addKeys(connection, newKeys),
    ]);
  }

  async #addKeys(connection: Connection, keys: GroupFacts['newKeys']): Promise<void> {
    const { store } = this;
    const nowMs = Date.now();
    const columns = [
      keys.map(({ key }) => key),
      keys.map(({ user }) => user),
      keys.map(({ fingerprint }) => fingerprint),
      keys.map(({ plant }) => plant),
      keys.map(({ position }) => position),
    ];
    await settled([
      connection.query(changeSql.removeOldKeys, [store, nowMs - keepKeysMs]),
      connection.query(changeSql.addKeys, [store, ...columns, nowMs]),
    ]);
  }

  /** The number of plants of each owner who can get one, if there is a quota. */
  async #countOwners(connection: Connection): Promise<Map<number, number>> {
    const { perUser } = this.#rules.quotas;
    const restorable = this.queued.flatMap(({ change: { kind, id = 0 } }) =>
      kind === 'restore' ? (this.#plants.get(id) ?? this.#deletions.get(id)?.plant ?? []) : [],
    );
    const unknown = new Set(restorable.map(({ owner }) => owner)).difference(this.#userPlants);
    if (perUser === undefined || unknown.size === 0) return this.#userPlants;
    const values = [this.store, [...unknown], perUser + this.queued.length];
    const counts = await connection.query(changeSql.countPlantsOfUsers, values);
    return new Map([...this.#userPlants, ...counts]);
  }

  /** What the callers can change whose grants can have changed: nothing if there is no store. */
  async #identifyAgain(
    connection: Connection,
    grants: number | undefined,
  ): Promise<Map<string, ChangeReach | Problem>> {
    const callers = this.queued.map(({ change }) => change.by).filter(([at]) => at !== grants);
    const outdated = [...new Map(callers.map((by) => [by[1], by])).values()];
    const found = await settled(
      outdated.map((by) =>
        grants === undefined ? none : connection.query(...findAgain(this.store, by)),
      ),
    );
    return new Map(
      outdated.map((by, at) => {
        const caller = callerNow(this.store, by, found[at] ?? []);
        return [by[1], caller instanceof Problem ? caller : changeReachOf(caller)];
      }),
    );
  }

  /** Free ids for all creates without one, if too few are left above `lastId`. */
  async #drawIds(connection: Connection, lastId: number): Promise<number[]> {
    const requested = this.queued.flatMap(({ change: { id } }) => id ?? []);
    const count = this.queued.length - requested.length;
    if (Math.max(lastId, ...requested) + count <= maxId) return [];
    for (;;) {
      const drawn = new Set(Array.from({ length: count }, randomId));
      const taken = await connection.query(changeSql.findPlants, [this.store, [...drawn]]);
      const used = new Set([...requested, ...taken.map(([, id]) => id)]);
      const free = drawn.difference(used);
      if (free.size < count) continue;
      const deletions = await connection.query(logSql.findDeletions, [this.store, [...free]]);
      for (const [id, deletion] of this.#deletionsOf(deletions)) this.#deletions.set(id, deletion);
      return [...free];
    }
  }

  #deletionsOf(rows: readonly DeletionRow[]): Map<number, DeletionInLog> {
    const since = keptSince(this.#keepChangesMs);
    return new Map(rows.map((row) => [row[4], deletionOf(row, since)]));
  }

  /** The number of plants, exact unless it is far above the quota. 0 without a quota. */
  async #countPlants(connection: Connection): Promise<number> {
    const { perStore } = this.#rules.quotas;
    if (perStore === undefined) return 0;
    const limit = perStore + 1 + this.queued.length; // exact even after the deletes of this group
    const [row] = await connection.query(changeSql.countPlantsOfStore, [this.store, limit]);
    return row?.[0] ?? 0;
  }
}

const none = Promise.resolve([]);

function byId(rows: readonly (readonly [number, ...PlantRow])[]): Map<number, StoredPlant> {
  return new Map(
    rows.map(([position, id, owner, ...texts]) => [id, { ...plantOf(id, owner, texts), position }]),
  );
}

/** The parameters of a statement that inserts plants. */
function columnsOf(store: number, plants: readonly StoredPlant[]): readonly unknown[] {
  return [
    store,
    plants.map(({ id }) => id),
    plants.map(({ owner }) => owner),
    plants.map(({ position }) => position),
    ...textFields.map((field) => plants.map((plant) => plant[field])),
  ];
}

/** Decides a change, and makes its effect part of the facts for the next one. */
function outcomeOf(change: Change, facts: GroupFacts, rules: Rules): Outcome {
  try {
    const { result, effect } = decide(change, facts, rules);
    if (effect !== undefined) facts.add(effect);
    return result;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
