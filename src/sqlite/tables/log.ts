/**
 * The log of changes in SQLite.
 */
import { reaches, type ReadAccess, type ShareAccess } from '../../access/access.ts';
import { tokenId } from '../../access/token.ts';
import {
  historyOf,
  keptSince,
  logPageOf,
  maxRemovedChanges,
  type ChangeEvent,
  type ChangeLog,
  type DeletedPlant,
  type LogEntry,
  type LoggedChange,
  type LogPosition,
  type PlantChange,
} from '../../log/change-log.ts';
import type { ScanStep } from '../../shared/scan.ts';
import type { Prepare, Sync } from '../driver.ts';
import type { Stores } from './stores.ts';

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

type DeletionRow = readonly [
  owner: number,
  name: string,
  tag: string,
  at: number,
  user: number | null,
  version: number,
  number: number,
];

/** Deletions that a step of a bin reads, and those within reach among them that it checks. The largest take 1 ms. */
const maxScannedDeletions = 500;
const maxCheckedDeletions = 40;
/** Stores that a step of a removal checks, in about 2 ms. */
const maxCheckedStores = 1_000;

const nameOf = (user: string) =>
  `(SELECT name FROM users WHERE users.store = changes.store AND users.user = changes.${user})`;
const byPlant = 'changes INDEXED BY changes_by_plant';
const ofPlant = `${byPlant} WHERE store = ?1 AND plant = ?2 ORDER BY version DESC, number DESC`;
const ofStore = 'store = (SELECT stores.store FROM stores WHERE stores.name = :store)';
const inOrder = '(version, number) > (:version, :number) ORDER BY version, number LIMIT :limit + 0';

export type Log = ReturnType<typeof openLog>;

/** `keepMs` as in `WriteSettings`. */
export function openLog(prepare: Prepare, stores: Stores, keepMs: number | undefined) {
  const insert = prepare(`
    INSERT INTO changes
      (store, version, number, event, at, user, token, request, plant, owner, name, tag, is_restorable)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const endDeletion = prepare(`
    UPDATE changes SET is_restorable = 0
    WHERE (store, version, number) = (SELECT store, version, number FROM ${ofPlant} LIMIT 1)
      AND is_restorable = 1`);
  const listStores = prepare<[store: number]>(
    `SELECT store FROM stores WHERE store >= ? ORDER BY store LIMIT ${maxCheckedStores}`,
  );
  const oldest = `FROM changes WHERE store = ?1 ORDER BY version, number`;
  const findOldest = prepare<[at: number]>(`SELECT at ${oldest} LIMIT 1`);
  const removeOldest = prepare(`
    DELETE FROM changes WHERE (store, version, number) IN (
      SELECT ?1, version, number FROM (
        SELECT version, number, max(at) OVER (ORDER BY version, number) AS newest
        FROM (SELECT version, number, at ${oldest} LIMIT ?3 + 0))
      WHERE newest < ?2)`);
  const findDeletion = prepare<DeletionRow>(`
    SELECT owner, name, tag, at, user, version, number FROM changes
    WHERE store = ?1 AND (version, number) = (SELECT version, number FROM ${ofPlant} LIMIT 1)
      AND event = 'deleted' AND NOT EXISTS (
        SELECT 1 FROM users
        WHERE store = ?1 AND user = changes.owner AND removed_version >= changes.version)`);
  const listDeletions = prepare<
    [version: number, number: number, owner: number, plant: number, at: number]
  >(`
    SELECT version, number, owner, plant, at FROM changes INDEXED BY restorable_changes
    WHERE store = ? AND is_restorable = 1 AND (version, number) < (?, ?)
    ORDER BY version DESC, number DESC LIMIT ${maxScannedDeletions}`);
  const findOwner = prepare<[owner: number]>('SELECT owner FROM plants WHERE store = ? AND id = ?');
  const historyColumns = `event, at, ${nameOf('user')}, ${nameOf('owner')}, name, tag`;
  const history = prepare<HistoryRow>(`SELECT ${historyColumns} FROM ${ofPlant} LIMIT ?3 + 0`);
  const logColumns = `${historyColumns}, token, request, plant, version, number`;
  const list = prepare<LogRow>(`SELECT ${logColumns} FROM changes WHERE ${ofStore} AND ${inOrder}`);
  const listPlant = prepare<LogRow>(`
    SELECT ${logColumns} FROM ${byPlant} WHERE ${ofStore} AND plant = :plant AND ${inOrder}`);
  const readClock = prepare<[confirmedMs: number, aheadSinceMs: number | null]>(
    'SELECT confirmed_at, ahead_since FROM retention',
  );
  const setClock = prepare(
    'UPDATE retention SET confirmed_at = max(confirmed_at, ?), ahead_since = ?',
  );

  /** The plant that can be restored with this id: its last change is its deletion, and its owner was not removed since. */
  function findDeleted(store: number, id: number): DeletedPlant | undefined {
    const row = findDeletion.get(store, id);
    if (row === undefined) return undefined;
    const [owner, name, tag, deletedAtMs, user, version, number] = row;
    if (deletedAtMs < keptSince(keepMs)) return undefined;
    const position = { version, number };
    return { id, name, tag, owner, deletedAtMs, deletedBy: user ?? undefined, position };
  }

  const log: Sync<Omit<ChangeLog, 'deleted'>> = {
    history({ store, read }, plant, limit) {
      const owner = findOwner.get(store, plant)?.[0] ?? findDeleted(store, plant)?.owner;
      if (owner === undefined || !reaches(read, owner)) return undefined;
      return historyOf(history.all(store, plant, limit).map(toPlantChange), keptSince(keepMs));
    },

    list(query) {
      const { version, number } = query.after ?? { version: -1, number: 0 };
      const { store, plant, limit } = query;
      const range = { store, version, number, limit };
      const rows = plant === undefined ? list.all(range) : listPlant.all({ ...range, plant });
      return logPageOf(rows.map(toLoggedChange), query, keptSince(keepMs));
    },

    removeOld(beforeMs, from) {
      let left = maxRemovedChanges;
      let next = from;
      for (const [store] of listStores.all(from)) {
        const [oldestMs = beforeMs] = findOldest.get(store) ?? [];
        if (oldestMs < beforeMs) left -= Number(removeOldest.run(store, beforeMs, left).changes);
        if (left === 0) return store;
        next = store + 1;
      }
      return next === from ? undefined : next;
    },

    readClock() {
      const [confirmedMs = 0, aheadSinceMs] = readClock.get() ?? [];
      return { confirmedMs, aheadSinceMs: aheadSinceMs ?? undefined };
    },

    setClock({ confirmedMs, aheadSinceMs = null }) {
      setClock.run(confirmedMs, aheadSinceMs);
    },
  };

  /** Adds a change of this transaction. */
  function add(store: number, entry: LogEntry): void {
    const row = stores.raise(store);
    const {
      event,
      by,
      request = null,
      plant = null,
      owner = null,
      name = null,
      tag = null,
    } = entry;
    const [, , user = null, token = null] = by ?? [];
    if (entry.isBorder) endDeletion.run(store, plant);
    insert.run(
      store,
      row.version,
      ++row.entries,
      event,
      Date.now(),
      user,
      token,
      request,
      plant,
      owner,
      name,
      tag,
      event === 'deleted' ? 1 : 0,
    );
  }

  return {
    ...log,
    findDeleted,
    add,

    /** One step of a bin: the plants within reach among the next deletions before `after`. */
    binStep(
      { store, write }: ReadAccess,
      after: LogPosition,
      limit: number,
    ): ScanStep<DeletedPlant, LogPosition> {
      const rows: DeletedPlant[] = [];
      let checked = 0;
      let scannedTo: LogPosition | undefined;
      const deletions = listDeletions.all(store, after.version, after.number);
      const since = keptSince(keepMs);
      for (const [version, number, owner, plant, at] of deletions) {
        scannedTo = { version, number };
        if (at < since || !reaches(write, owner)) continue;
        const found = findDeleted(store, plant);
        if (found !== undefined) rows.push(found);
        if (++checked === maxCheckedDeletions || rows.length > limit) return { rows, scannedTo };
      }
      return { rows, scannedTo: deletions.length === maxScannedDeletions ? scannedTo : undefined };
    },

    /** Adds a change that is not decided by decide.ts. Without a log, raises the version: a copy in progress must notice it. */
    addUnlessOff(store: number, entry: LogEntry): void {
      if (keepMs === 0) stores.raise(store);
      else add(store, entry);
    },
  };
}

/** What an entry says about a share or a token. */
type Subject = Pick<LogEntry, 'owner' | 'name' | 'tag'>;

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
