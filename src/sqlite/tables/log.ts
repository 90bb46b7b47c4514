/**
 * The log of changes in SQLite.
 */
import { reaches, type Identified, type ShareAccess } from '../../access/access.ts';
import { tokenId } from '../../access/token.ts';
import {
  maxHistory,
  logPageOf,
  maxRemovedChanges,
  sinceCreation,
  type ChangeEvent,
  type ChangeLog,
  type LoggedChange,
  type PlantChange,
} from '../../log/change-log.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import type { Prepare, Sync } from '../driver.ts';
import type { Stores } from './stores.ts';

/** Who made a change. Empty for a command of the operator. */
export type Author = readonly [by?: Identified | undefined, request?: string | undefined];

/** A change to a plant has its id, and what was there before. */
interface Subject {
  plant?: number | undefined;
  owner?: number | undefined;
  name?: string | undefined;
  tag?: string | undefined;
}

type HistoryRow = readonly [
  event: ChangeEvent,
  at: number,
  user: string | null,
  owner: string | null,
  name: string | null,
  tag: string | null,
];

type LogRow = readonly [
  ...HistoryRow,
  token: string | null,
  request: string | null,
  plant: number | null,
  version: number,
  number: number,
];

const nameOf = (user: string) =>
  `(SELECT name FROM users WHERE users.store = changes.store AND users.user = changes.${user})`;
const ofPlant =
  'changes INDEXED BY changes_by_plant WHERE store = ?1 AND plant = ?2 ORDER BY version DESC, number DESC';

export type Log = ReturnType<typeof openLog>;

/** `keepMs` is how long changes are kept: 0 if none are, and undefined if this process removes none. */
export function openLog(prepare: Prepare, stores: Stores, keepMs: number | undefined) {
  const insert = prepare(`
    INSERT INTO changes (store, version, number, event, at, user, token, request, plant, owner, name, tag)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const oldest = `SELECT version, at FROM changes WHERE store = ?1 ORDER BY version, number`;
  const findOldest = prepare<[version: number, at: number]>(`${oldest} LIMIT 1`);
  const removeOldest = prepare(`
    DELETE FROM changes WHERE store = ?1 AND version <= (
      SELECT max(version) FROM (${oldest} LIMIT ${maxRemovedChanges}) WHERE at < ?2)`);
  const findLastDeletion = prepare<[owner: number, name: string, tag: string, version: number]>(`
    SELECT owner, name, tag, version
    FROM (SELECT event, owner, name, tag, version FROM ${ofPlant} LIMIT ${maxHistory})
    WHERE event = 'deleted' LIMIT 1`);
  const findOwner = prepare<[owner: number]>('SELECT owner FROM plants WHERE store = ? AND id = ?');
  const wasRemoved = prepare(
    'SELECT 1 FROM users WHERE store = ? AND user = ? AND removed_version >= ?',
  );
  const historyColumns = `event, at, ${nameOf('user')}, ${nameOf('owner')}, name, tag`;
  const history = prepare<HistoryRow>(`SELECT ${historyColumns} FROM ${ofPlant} LIMIT ?3 + 0`);
  const list = prepare<LogRow>(`
    SELECT ${historyColumns}, token, request, plant, version, number
    FROM changes
    WHERE store = (SELECT stores.store FROM stores WHERE stores.name = :store)
      AND (version, number) > (:version, :number)
    ORDER BY version, number LIMIT :limit + 0`);

  /** The plant that had the id last, unless its owner was removed since. */
  function findDeleted(store: number, id: number): OwnedPlant | undefined {
    const row = findLastDeletion.get(store, id);
    if (row === undefined) return undefined;
    const [owner, name, tag, version] = row;
    const isRemoved = wasRemoved.get(store, owner, version) !== undefined;
    return isRemoved ? undefined : { id, name, tag, owner };
  }

  const reads: Sync<ChangeLog> = {
    history({ store, read }, plant, limit) {
      const owner = findOwner.get(store, plant)?.[0] ?? findDeleted(store, plant)?.owner;
      if (owner === undefined || !reaches(read, owner)) return undefined;
      return sinceCreation(history.all(store, plant, limit).map(toPlantChange));
    },

    list(query) {
      const { version, number } = query.after ?? { version: -1, number: 0 };
      const { store, limit } = query;
      return logPageOf(list.all({ store, version, number, limit }).map(toLoggedChange), query);
    },
  };

  return {
    ...reads,
    findDeleted,

    /** Adds a change of this transaction. */
    add(store: number, event: ChangeEvent, [by, request]: Author, subject: Subject): void {
      const row = stores.of(store);
      row.changes++;
      if (keepMs === 0) return;
      const { plant = null, owner = null, name = null, tag = null } = subject;
      insert.run(
        store,
        row.version,
        row.changes,
        event,
        Date.now(),
        by?.[2] ?? null,
        by?.[3] ?? null,
        request ?? null,
        plant,
        owner,
        name,
        tag,
      );
    },

    /** Removes a bounded number of changes that are too old. */
    removeOld(store: number): void {
      if (keepMs === undefined) return;
      const beforeMs = Date.now() - keepMs;
      const oldestAt = findOldest.get(store)?.[1] ?? Infinity;
      if (oldestAt < beforeMs) removeOldest.run(store, beforeMs);
    },
  };
}

/** A share that has ended. */
export type SharedRow = readonly [owner: number, user: string, access: ShareAccess];

export function shareOfRow([owner, name, tag]: SharedRow): Subject {
  return { owner, name, tag };
}

export type TokenOfUserRow = readonly [hash: Uint8Array, scopes: string];

export function tokenOfRow(store: number, owner: number, [hash, tag]: TokenOfUserRow): Subject {
  return { owner, name: tokenId(hash, store), tag };
}

function toPlantChange(row: readonly [...HistoryRow, ...rest: readonly unknown[]]): PlantChange {
  const [event, atMs, user, owner, name, tag] = row;
  return {
    event,
    atMs,
    user: user ?? undefined,
    owner: owner ?? undefined,
    name: name ?? undefined,
    tag: tag ?? undefined,
  };
}

function toLoggedChange(row: LogRow): LoggedChange {
  const [, , , , , , token, request, plant, version, number] = row;
  return {
    ...toPlantChange(row),
    position: { version, number },
    token: token ?? undefined,
    request: request ?? undefined,
    plant: plant ?? undefined,
  };
}
