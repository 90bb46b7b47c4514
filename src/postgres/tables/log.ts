/**
 * The log of changes in PostgreSQL. Whoever adds to it has locked the row of the store in the same transaction.
 */
import { reaches } from '../../access/access.ts';
import {
  historyOf,
  keptSince,
  logPageOf,
  maxHistory,
  maxRemovedChanges,
  type ChangeEvent,
  type ChangeLog,
  type LogEntry,
  type LoggedChange,
  type PlantChange,
} from '../../log/change-log.ts';
import type { UserStorage } from '../../access/user-storage.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import { listDeleted } from './bin.ts';
import type { Servers } from '../servers.ts';
import { sql } from '../pool/connection.ts';
import type { BoundStatement } from '../pool/pool.ts';
import type { Names } from './names.ts';
import { findSql } from './plant-statements.ts';

type ChangeRow = readonly [
  event: ChangeEvent,
  at: number,
  user: number | null,
  owner: number | null,
  name: string | null,
  tag: string | null,
];

type HistoryRow = readonly [
  ...ChangeRow,
  version: number,
  plantOwner: number | null,
  removedVersion: number | null,
];

type LogRow = readonly [
  ...ChangeRow,
  token: string | null,
  request: string | null,
  plant: number | null,
  version: number,
  number: number,
];

/** A plant with its owner. */
export type PlantRow = readonly [id: number, name: string, tag: string, owner: number];

/** Stores that a step of a removal checks, with a statement for each. */
const maxCheckedStores = 100;

const into = `
  INSERT INTO plant_store.changes
    (store, version, number, event, at, user_id, token, request, plant, owner, name, tag, is_restorable)`;
const columns = 'event, at, user_id, owner, name, tag';
const oldest = (wanted: string, limit: number) => `
  SELECT ${wanted} FROM plant_store.changes WHERE store = $1 ORDER BY version, number LIMIT ${limit}`;

export const logSql = {
  // In the form that Citus plans fastest (statements.ts). It accepts no cast around an `unnest`.
  add: sql`${into}
    VALUES ($1, $2, unnest($3::integer[]), unnest($4::text[]), $5, unnest($6::bigint[]), unnest($7::text[]),
      unnest($8::text[]), unnest($9::bigint[]), unnest($10::bigint[]), unnest($11::text[]),
      unnest($12::text[]), unnest($13::smallint[]))`,
  // The last changes of these plants before a version.
  endDeletions: sql`
    UPDATE plant_store.changes SET is_restorable = 0
    FROM unnest($3::bigint[]) AS ids (id) CROSS JOIN LATERAL (
      SELECT version, number FROM plant_store.changes
      WHERE store = $1 AND plant = ids.id AND version < $2 ORDER BY version DESC, number DESC LIMIT 1
    ) AS last
    WHERE changes.store = $1 AND changes.version = last.version AND changes.number = last.number
      AND is_restorable = 1`,
  // Mostly, the first condition is false, and nothing else is read.
  removeOld: sql`
    DELETE FROM plant_store.changes USING (
      SELECT version, number, max(at) OVER (ORDER BY version, number) AS newest
      FROM (${oldest('version, number, at', maxRemovedChanges)}) AS first_ones
    ) AS oldest
    WHERE (${oldest('at', 1)}) < $2
      AND changes.store = $1 AND changes.version = oldest.version
      AND changes.number = oldest.number AND oldest.newest < $2
    RETURNING changes.number`,
  // Locks the row of the store like a group of changes.
  lockVersion: sql<readonly [version: number]>`
    SELECT version FROM plant_store.stores WHERE store = $1 FOR UPDATE`,
  // Not its writer: whether the last group was committed can still be asked.
  raiseVersion: sql`UPDATE plant_store.stores SET version = $2 WHERE store = $1`,
  // The plants with these ids whose last change is their deletion, unless their owners were removed since.
  findDeleted: sql<PlantRow>`
    SELECT ids.id, last.name, last.tag, last.owner
    FROM unnest($2::bigint[]) AS ids (id) CROSS JOIN LATERAL (
      SELECT event, version, at, owner, name, tag FROM plant_store.changes
      WHERE store = $1 AND plant = ids.id ORDER BY version DESC, number DESC LIMIT 1
    ) AS last
    JOIN plant_store.users ON users.store = $1 AND users.id = last.owner
    WHERE last.event = 'deleted' AND last.at >= $3 AND users.removed_version < last.version`,
  // One statement, because the plant and its history belong together.
  history: sql<HistoryRow>`
    SELECT ${columns}, version,
           (SELECT owner FROM plant_store.plants WHERE plants.store = $1 AND plants.id = $2),
           (SELECT removed_version FROM plant_store.users
            WHERE users.store = $1 AND users.id = changes.owner)
    FROM plant_store.changes
    WHERE changes.store = $1 AND plant = $2 ORDER BY version DESC, number DESC LIMIT $3`,
  list: sql<LogRow>`
    SELECT ${columns}, token, request, plant, version, number FROM plant_store.changes
    WHERE store = $1 AND (version, number) > ($2, $3) ORDER BY version, number LIMIT $4`,
  listPlant: sql<LogRow>`
    SELECT ${columns}, token, request, plant, version, number FROM plant_store.changes
    WHERE store = $1 AND plant = $5 AND (version, number) > ($2, $3)
    ORDER BY version, number LIMIT $4`,
};

const retentionSql = {
  listStores: sql<readonly [store: number]>`
    SELECT store FROM plant_store.stores WHERE store >= $1 ORDER BY store LIMIT ${maxCheckedStores}`,
  readClock: sql<readonly [confirmedMs: number, aheadSinceMs: number | null]>`
    SELECT confirmed_at, ahead_since FROM plant_store.retention WHERE id = 1`,
  setClock: sql`
    UPDATE plant_store.retention SET confirmed_at = greatest(confirmed_at, $1), ahead_since = $2
    WHERE id = 1`,
};

/** Adds changes to the log as a version that nobody else writes. */
export function addToLog(
  store: number,
  version: number,
  entries: readonly LogEntry[],
): BoundStatement[] {
  const column = (valueOf: (entry: LogEntry) => unknown) =>
    entries.map((entry) => valueOf(entry) ?? null);
  const borders = entries.flatMap(({ isBorder, plant }) => (isBorder && plant) || []);
  /** By plant, its last deletion, unless its id was used again since. */
  const deletions = new Map<number | undefined, LogEntry>();
  for (const entry of entries) {
    if (entry.event === 'deleted') deletions.set(entry.plant, entry);
    if (entry.isBorder) deletions.delete(entry.plant);
  }
  const added: BoundStatement = [
    logSql.add,
    [
      store,
      version,
      entries.map((_, at) => at + 1),
      column(({ event }) => event),
      Date.now(),
      column(({ by }) => by?.[2]),
      column(({ by }) => by?.[3]),
      column(({ request }) => request),
      column(({ plant }) => plant),
      column(({ owner }) => owner),
      column(({ name }) => name),
      column(({ tag }) => tag),
      entries.map((entry) => (deletions.get(entry.plant) === entry ? 1 : 0)),
    ],
  ];
  return borders.length === 0 ? [added] : [[logSql.endDeletions, [store, version, borders]], added];
}

/**
 * The first statement of each transaction that changes grants or moves plants: nothing is written for a token that is being
 * revoked, and what the next statements read stays as it is. Its row has the version of the store.
 */
export function lockVersion(store: number): BoundStatement {
  return [logSql.lockVersion, [store]];
}

/** Adds changes to shares, tokens and users, or moved plants, as the next version. `locked` has the row of `lockVersion`. */
export type AppendToLog = (
  store: number,
  locked: readonly (readonly unknown[])[] | undefined,
  entries: readonly LogEntry[],
) => BoundStatement[];

/** `keepMs` as in `WriteSettings`. A change raises the version even without a log: a copy in progress must notice it. */
export function appenderTo(keepMs: number | undefined): AppendToLog {
  return (store, locked, entries) => {
    if (entries.length === 0) return [];
    const [version = 0] = (locked?.[0] ?? []) as [number?]; // see above
    const raise: BoundStatement = [logSql.raiseVersion, [store, version + 1]];
    return keepMs === 0 ? [raise] : [raise, ...addToLog(store, version + 1, entries)];
  };
}

export function toPlant([id, name, tag, owner]: PlantRow): OwnedPlant {
  return { id, name, tag, owner };
}

/** `keepMs` as in `WriteSettings`. */
export function openLog(
  servers: Servers,
  names: Names,
  users: UserStorage,
  keepMs: number | undefined,
): ChangeLog {
  /** The names of the users in these rows. */
  async function namesIn(
    store: number,
    rows: readonly (readonly [...ChangeRow, ...rest: readonly unknown[]])[],
  ): Promise<ReadonlyMap<number, string>> {
    const numbers = rows.flatMap(([, , user, owner]) => [user ?? [], owner ?? []].flat());
    return users.namesOf(store, numbers);
  }

  /** Of a plant that is older than the log. */
  async function findOwner(store: number, plant: number): Promise<number | undefined> {
    return (await servers.read(store, findSql, [store, plant]))[0]?.[2];
  }

  return {
    async history({ store, read }, plant, limit) {
      const rows = await servers.read(store, logSql.history, [store, plant, maxHistory]);
      const since = keptSince(keepMs);
      const owner = rows[0] === undefined ? await findOwner(store, plant) : ownerOf(rows, since);
      if (owner === undefined || !reaches(read, owner)) return undefined;
      const userNames = await namesIn(store, rows);
      const changes = rows.map((row) => toPlantChange(row, userNames));
      return historyOf(changes, since).slice(0, limit);
    },

    deleted: (caller, query) => listDeleted(servers, caller, query, keepMs),

    async list(query) {
      const store = await names.findStore(query.store);
      if (store === undefined) return { changes: [], next: undefined };
      const { version, number } = query.after ?? { version: -1, number: 0 };
      const { plant, limit } = query;
      const range = [store, version, number, limit];
      const rows = await (plant === undefined
        ? servers.read(store, logSql.list, range)
        : servers.read(store, logSql.listPlant, [...range, plant]));
      const userNames = await namesIn(store, rows);
      const changes = rows.map((row) => toLoggedChange(row, userNames));
      return logPageOf(changes, query, keptSince(keepMs));
    },

    async removeOld(beforeMs, from) {
      const stores = await (await servers.anyServer()).read(retentionSql.listStores, [from]);
      for (const [store] of stores) {
        const server = await servers.ofStore(store);
        const [removed] = await server.transact([logSql.removeOld, [store, beforeMs]]);
        if (removed?.length === maxRemovedChanges) return store;
      }
      const last = stores.at(-1)?.[0];
      return last === undefined ? undefined : last + 1;
    },

    async readClock() {
      const server = await servers.anyServer();
      const [row] = await server.read(retentionSql.readClock, []);
      const [confirmedMs = 0, aheadSinceMs] = row ?? [];
      return { confirmedMs, aheadSinceMs: aheadSinceMs ?? undefined };
    },

    async setClock({ confirmedMs, aheadSinceMs = null }) {
      const server = await servers.anyServer();
      await server.transact([retentionSql.setClock, [confirmedMs, aheadSinceMs]]);
    },
  };
}

/** The owner of the plant or, if it can be restored, its last one. */
function ownerOf(rows: readonly HistoryRow[], keptSinceMs: number): number | undefined {
  const [last] = rows;
  if (last !== undefined && last[7] !== null) return last[7];
  if (last?.[0] !== 'deleted' || last[1] < keptSinceMs) return undefined;
  const { 3: owner, 6: version, 8: removedVersion } = last;
  return removedVersion === null || removedVersion >= version ? undefined : (owner ?? undefined);
}

function toPlantChange(
  [event, atMs, user, owner, name, tag]: readonly [...ChangeRow, ...rest: readonly unknown[]],
  userNames: ReadonlyMap<number, string>,
): PlantChange {
  return {
    event,
    atMs,
    user: userNames.get(user ?? 0),
    owner: userNames.get(owner ?? 0),
    name: name ?? undefined,
    tag: tag ?? undefined,
  };
}

function toLoggedChange(row: LogRow, userNames: ReadonlyMap<number, string>): LoggedChange {
  const [, , , , , , token, request, plant, version, number] = row;
  return {
    ...toPlantChange(row, userNames),
    position: { version, number },
    token: token ?? undefined,
    request: request ?? undefined,
    plant: plant ?? undefined,
  };
}
