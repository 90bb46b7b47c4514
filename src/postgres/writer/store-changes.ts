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
import type { Attempt } from './group.ts';
import { GroupFacts, keyOf } from './group-facts.ts';
import { changeSql, noStore } from './statements.ts';

/** `isRepeated` is whether another program can have inserted plants above the last id. */
export function storeChanges(
  store: number,
  changes: readonly Change[],
  { quotas = noQuotas, keepChangesMs }: WriteSettings,
  isRepeated: boolean,
): Attempt {
  const { perUser, perStore } = quotas;
  const rules: Rules = { quotas, hasLog: keepChangesMs !== 0 };
  const keptSinceMs = keptSince(keepChangesMs);
  const requested = changes.flatMap(({ id }) => id ?? []);
  /** By the hash of their token, the rows of callers whose grants can have changed. */
  const callers = new Map<string, readonly Row[]>();
  const facts = new GroupFacts((by) => {
    const rows = callers.get(by[1]);
    return rows && changeReachOf(callerNow(store, by, rows));
  });
  let before = noStore;

  async function findDeletions(connection: Connection, ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    const rows = await connection.query(logSql.findDeletions, [store, [...new Set(ids)]]);
    for (const row of rows) facts.deletions.set(row[4], deletionOf(row, keptSinceMs));
  }

  /** The limit leaves room for the deletes of this group, so that the counts stay exact. */
  async function countOwners(connection: Connection, owners: readonly number[]): Promise<void> {
    const unknown = [...new Set(owners).difference(facts.counts)];
    if (perUser === undefined || unknown.length === 0) return;
    const values = [store, unknown, perUser + changes.length];
    const counts = await connection.query(changeSql.countPlantsOfUsers, values);
    for (const [owner, plants] of counts) facts.counts.set(owner, plants);
  }

  /** The limit is as above. */
  async function countPlants(connection: Connection): Promise<void> {
    if (perStore === undefined) return;
    const values = [store, perStore + 1 + changes.length];
    const [[plants] = [0]] =
      before.plants === null
        ? await connection.query(changeSql.countPlantsOfStore, values)
        : [[before.plants]];
    facts.counts.set(undefined, plants);
  }

  async function identifyAgain(connection: Connection): Promise<void> {
    const all = changes.flatMap(({ by }) => (by === undefined ? [] : [by]));
    const outdated = all.filter(([version]) => version !== before.grants);
    const again = new Map(outdated.map((by) => [by[1], by])).entries();
    const found = again.map(async ([token, by]) => {
      callers.set(token, await connection.query(...findAgain(store, by)));
    });
    await settled([...found]);
  }

  /** Free ids for all creates without one, if too few are left above `lastId`. */
  async function drawIds(connection: Connection): Promise<void> {
    const count = changes.length - requested.length;
    if (canCountOn(Math.max(facts.lastId, ...requested), count)) return;
    let free: number[] = [];
    while (free.length < count) {
      const drawn = new Set(Array.from({ length: count }, randomId));
      const taken = await connection.query(changeSql.findPlants, [store, [...drawn]]);
      const used = new Set([...requested, ...taken.map(([, id]) => id)]);
      free = [...drawn.difference(used)];
    }
    facts.randomIds = free;
    await findDeletions(connection, free);
  }

  return {
    async read(connection) {
      const ids = [...new Set(requested)];
      const creates = changes.filter((change) => change.kind === 'create');
      const owners = creates.map(({ owner }) => owner);
      const keys = creates.flatMap(({ key }) => key?.[0] ?? []);
      const added = changes.flatMap(({ kind, id }) =>
        kind === 'create' || kind === 'restore' ? (id ?? []) : [],
      );
      const sinceMs = Date.now() - keepKeysMs;
      const [plants, found, [largest]] = await settled([
        ids.length === 0 ? none : connection.query(changeSql.findPlants, [store, ids]),
        keys.length === 0 ? none : connection.query(changeSql.findKeys, [store, keys, sinceMs]),
        isRepeated ? connection.query(changeSql.findLargest, [store]) : none,
        findDeletions(connection, added),
        countOwners(connection, owners),
      ]);
      for (const [position, id, owner, ...texts] of plants) {
        facts.plants.set(id, { ...plantOf(id, owner, texts), position });
      }
      for (const [user, key, fingerprint, plant] of found) {
        facts.keys.set(keyOf(user, key), { fingerprint, plant });
      }
      facts.lastId = Math.max(largest?.[0] ?? 0, ...facts.plants.keys());
    },

    async complete(row, connection) {
      before = row;
      facts.lastId = Math.max(row.lastId, facts.lastId);
      facts.position = row.position;
      const restored = changes.flatMap(({ kind, id = 0 }) =>
        kind === 'restore' ? (facts.plant(id) ?? facts.deletion(id)?.plant ?? []) : [],
      );
      const owners = restored.map(({ owner }) => owner);
      await drawIds(connection);
      await identifyAgain(connection);
      await countOwners(connection, owners);
      await countPlants(connection);
    },

    decide(at) {
      const change = changes[at];
      if (change === undefined) throw defect(new Error('there is no such change'));
      const { result, effect } = decide(change, facts, rules);
      if (effect !== undefined) facts.add(effect);
      return result;
    },

    effect() {
      const { lastId, position, counts, entries, endedDeletions, newKeys } = facts;
      const { created, updated, deleted } = facts.results();
      const plants = counts.get(undefined) ?? Infinity;
      const isExact = plants <= (perStore ?? 0); // above it, the count is a lower bound
      const nowMs = Date.now();
      const statements: (false | Query)[] = [
        deleted.length > 0 && [changeSql.delete, [store, deleted]],
        created.length > 0 && [changeSql.create, [store, ...columnsOf(created, plantColumns)]],
        updated.length > 0 && [changeSql.update, [store, ...columnsOf(updated, plantColumns)]],
        ...addToLog(store, entries, endedDeletions),
        newKeys.length > 0 && [changeSql.removeOldKeys, [store, nowMs - keepKeysMs]],
        newKeys.length > 0 && [
          changeSql.addKeys,
          [store, ...columnsOf(newKeys, keyColumns), nowMs],
        ],
      ];
      return {
        row: { ...before, lastId, position, plants: isExact ? plants : null },
        statements: statements.filter((query) => query !== false),
      };
    },
  };
}

const none = Promise.resolve([]);

const plantColumns = ['id', 'owner', 'position', ...textFields] as const;
const keyColumns = ['key', 'user', 'fingerprint', 'plant', 'position'] as const;

/** The values of these members, as parameters of a statement that inserts rows. */
function columnsOf<T>(rows: readonly T[], names: readonly (keyof T)[]): readonly unknown[] {
  return names.map((name) => rows.map((row) => row[name]));
}
