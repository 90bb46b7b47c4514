/**
 * Changes to the plants of one store in a transaction (group.ts): what decide.ts needs is read ahead, and at the end, one
 * statement of each kind writes the effects of all of them.
 */
import { changeReachOf } from '../../access/access.ts';
import { keptSince } from '../../log/change-log.ts';
import type { Change } from '../../plants/changes.ts';
import { decide, type Rules } from '../../plants/decide.ts';
import { plantOf, textFields } from '../../plants/fields.ts';
import { keepKeysMs } from '../../plants/idempotency.ts';
import { canCountOn, randomId } from '../../plants/ids.ts';
import { noQuotas } from '../../plants/quota.ts';
import { defect } from '../../problem.ts';
import { callerNow, findAgain } from '../../sql/grants.ts';
import { deletionOf, logSql } from '../../sql/log.ts';
import type { Query, Row } from '../../sql/statement.ts';
import type { WriteSettings } from '../../storage.ts';
import { settled } from '../errors.ts';
import type { Connection } from '../pool/connection.ts';
import { addToLog } from '../tables/log.ts';
import type { Attempt, Effect } from './group.ts';
import { GroupFacts, keyOf } from './group-facts.ts';
import { changeSql, noStore, type StoreRow } from './statements.ts';

export class StoreChanges implements Attempt {
  readonly #store: number;
  readonly #changes: readonly Change[];
  readonly #rules: Rules;
  readonly #keptSinceMs: number;
  /** Whether another program can have inserted plants above the last id. */
  readonly #isRepeated: boolean;
  #row = noStore;
  /** By the hash of their token, the rows of callers whose grants can have changed. */
  readonly #callers = new Map<string, readonly Row[]>();
  readonly #facts = new GroupFacts((by) => {
    const rows = this.#callers.get(by[1]);
    return rows && changeReachOf(callerNow(this.#store, by, rows));
  });

  constructor(
    store: number,
    changes: readonly Change[],
    { quotas = noQuotas, keepChangesMs }: WriteSettings,
    isRepeated: boolean,
  ) {
    this.#store = store;
    this.#changes = changes;
    this.#rules = { quotas, hasLog: keepChangesMs !== 0 };
    this.#keptSinceMs = keptSince(keepChangesMs);
    this.#isRepeated = isRepeated;
  }

  async read(connection: Connection): Promise<void> {
    const store = this.#store;
    const facts = this.#facts;
    const ids = [...new Set(this.#changes.flatMap(({ id }) => id ?? []))];
    const creates = this.#changes.filter((change) => change.kind === 'create');
    const owners = creates.map(({ owner }) => owner);
    const keys = creates.flatMap(({ key }) => key?.[0] ?? []);
    const added = this.#changes.flatMap(({ kind, id }) =>
      kind === 'create' || kind === 'restore' ? (id ?? []) : [],
    );
    const sinceMs = Date.now() - keepKeysMs;
    const [plants, found, [largest]] = await settled([
      ids.length === 0 ? none : connection.query(changeSql.findPlants, [store, ids]),
      keys.length === 0 ? none : connection.query(changeSql.findKeys, [store, keys, sinceMs]),
      this.#isRepeated ? connection.query(changeSql.findLargest, [store]) : none,
      this.#findDeletions(connection, added),
      this.#countOwners(connection, owners),
    ]);
    for (const [position, id, owner, ...texts] of plants) {
      facts.plants.set(id, { ...plantOf(id, owner, texts), position });
    }
    for (const [user, key, fingerprint, plant] of found) {
      facts.keys.set(keyOf(user, key), { fingerprint, plant });
    }
    facts.lastId = Math.max(largest?.[0] ?? 0, ...facts.plants.keys());
  }

  async complete(row: StoreRow, connection: Connection): Promise<void> {
    this.#row = row;
    const facts = this.#facts;
    facts.lastId = Math.max(row.lastId, facts.lastId);
    facts.position = row.position;
    const restored = this.#changes.flatMap(({ kind, id = 0 }) =>
      kind === 'restore' ? (facts.plant(id) ?? facts.deletion(id)?.plant ?? []) : [],
    );
    const owners = restored.map(({ owner }) => owner);
    await this.#drawIds(connection);
    await this.#identifyAgain(connection);
    await this.#countOwners(connection, owners);
    await this.#countPlants(connection);
  }

  decide(at: number): unknown {
    const change = this.#changes[at];
    if (change === undefined) throw defect(new Error('there is no such change'));
    const { result, effect } = decide(change, this.#facts, this.#rules);
    if (effect !== undefined) this.#facts.add(effect);
    return result;
  }

  effect(): Effect {
    const store = this.#store;
    const { lastId, position, counts, entries, endedDeletions, newKeys } = this.#facts;
    const { created, updated, deleted } = this.#facts.results();
    const plants = counts.get(undefined) ?? Infinity;
    const isExact = plants <= (this.#rules.quotas.perStore ?? 0); // above it, the count is a lower bound
    const nowMs = Date.now();
    const statements: (false | Query)[] = [
      deleted.length > 0 && [changeSql.delete, [store, deleted]],
      created.length > 0 && [changeSql.create, [store, ...columnsOf(created, plantColumns)]],
      updated.length > 0 && [changeSql.update, [store, ...columnsOf(updated, plantColumns)]],
      ...addToLog(store, entries, endedDeletions),
      newKeys.length > 0 && [changeSql.removeOldKeys, [store, nowMs - keepKeysMs]],
      newKeys.length > 0 && [changeSql.addKeys, [store, ...columnsOf(newKeys, keyColumns), nowMs]],
    ];
    return {
      row: { ...this.#row, lastId, position, plants: isExact ? plants : null },
      statements: statements.filter((query) => query !== false),
    };
  }

  async #findDeletions(connection: Connection, ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    const rows = await connection.query(logSql.findDeletions, [this.#store, [...new Set(ids)]]);
    for (const row of rows) this.#facts.deletions.set(row[4], deletionOf(row, this.#keptSinceMs));
  }

  /** The limit leaves room for the deletes of this group, so that the counts stay exact. */
  async #countOwners(connection: Connection, owners: readonly number[]): Promise<void> {
    const { perUser } = this.#rules.quotas;
    const unknown = [...new Set(owners).difference(this.#facts.counts)];
    if (perUser === undefined || unknown.length === 0) return;
    const values = [this.#store, unknown, perUser + this.#changes.length];
    const counts = await connection.query(changeSql.countPlantsOfUsers, values);
    for (const [owner, plants] of counts) this.#facts.counts.set(owner, plants);
  }

  /** The limit is as above. */
  async #countPlants(connection: Connection): Promise<void> {
    const { perStore } = this.#rules.quotas;
    if (perStore === undefined) return;
    const values = [this.#store, perStore + 1 + this.#changes.length];
    const [[plants] = [0]] =
      this.#row.plants === null
        ? await connection.query(changeSql.countPlantsOfStore, values)
        : [[this.#row.plants]];
    this.#facts.counts.set(undefined, plants);
  }

  async #identifyAgain(connection: Connection): Promise<void> {
    const { grants } = this.#row;
    const outdated = this.#changes.map(({ by }) => by).filter(([version]) => version !== grants);
    const callers = new Map(outdated.map((by) => [by[1], by]));
    const again = callers.entries().map(async ([token, by]) => {
      this.#callers.set(token, await connection.query(...findAgain(this.#store, by)));
    });
    await settled([...again]);
  }

  /** Free ids for all creates without one, if too few are left above `lastId`. */
  async #drawIds(connection: Connection): Promise<void> {
    const requested = this.#changes.flatMap(({ id }) => id ?? []);
    const count = this.#changes.length - requested.length;
    if (canCountOn(Math.max(this.#facts.lastId, ...requested), count)) return;
    let free: number[] = [];
    while (free.length < count) {
      const drawn = new Set(Array.from({ length: count }, randomId));
      const taken = await connection.query(changeSql.findPlants, [this.#store, [...drawn]]);
      const used = new Set([...requested, ...taken.map(([, id]) => id)]);
      free = [...drawn.difference(used)];
    }
    this.#facts.randomIds = free;
    await this.#findDeletions(connection, free);
  }
}

const none = Promise.resolve([]);

const plantColumns = ['id', 'owner', 'position', ...textFields] as const;
const keyColumns = ['key', 'user', 'fingerprint', 'plant', 'position'] as const;

/** The values of these members, as parameters of a statement that inserts rows. */
function columnsOf<T>(rows: readonly T[], names: readonly (keyof T)[]): readonly unknown[] {
  return names.map((name) => rows.map((row) => row[name]));
}
