/**
 * The log of changes in SQLite.
 */
import { reaches, type ReadAccess, type ShareAccess } from '../../access/access.ts';
import { tokenId } from '../../access/token.ts';
import {
  logPageOf,
  maxRemovedChanges,
  sinceCreation,
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
  const oldest = `FROM changes WHERE store = ?1 ORDER BY version, number`;
  const findOldest = prepare<[at: number]>(`SELECT at ${oldest} LIMIT 1`);
  const removeOldest = prepare(`
    DELETE FROM changes WHERE (store, version, number) IN (
      SELECT ?1, version, number FROM (
        SELECT version, number, max(at) OVER (ORDER BY version, number) AS newest
        FROM (SELECT version, number, at ${oldest} LIMIT ${maxRemovedChanges}))
      WHERE newest < ?2)`);
  const findDeletion = prepare<DeletionRow>(`
    SELECT owner, name, tag, at, user, version, number FROM changes
    WHERE store = ?1 AND (version, number) = (SELECT version, number FROM ${ofPlant} LIMIT 1)
      AND event = 'deleted' AND NOT EXISTS (
        SELECT 1 FROM users
        WHERE store = ?1 AND user = changes.owner AND removed_version >= changes.version)`);
  const listDeletions = prepare<[version: number, number: number, owner: number, plant: number]>(`
    SELECT version, number, owner, plant FROM changes INDEXED BY changes_of_deletions
    WHERE store = ? AND event = 'deleted' AND (version, number) < (?, ?)
    ORDER BY version DESC, number DESC LIMIT ${maxScannedDeletions}`);
  const findOwner = prepare<[owner: number]>('SELECT owner FROM plants WHERE store = ? AND id = ?');
  const historyColumns = `event, at, ${nameOf('user')}, ${nameOf('owner')}, name, tag`;
  const history = prepare<HistoryRow>(`SELECT ${historyColumns} FROM ${ofPlant} LIMIT ?3 + 0`);
  const list = prepare<LogRow>(`
    SELECT ${historyColumns}, token, request, plant, version, number
    FROM changes
    WHERE store = (SELECT stores.store FROM stores WHERE stores.name = :store)
      AND (version, number) > (:version, :number)
    ORDER BY version, number LIMIT :limit + 0`);

  /** The plant that can be restored with this id: its last change is its deletion, and its owner was not removed since. */
  function findDeleted(store: number, id: number): DeletedPlant | undefined {
    const row = findDeletion.get(store, id);
    if (row === undefined) return undefined;
    const [owner, name, tag, deletedAtMs, user, version, number] = row;
    const position = { version, number };
    return { id, name, tag, owner, deletedAtMs, deletedBy: user ?? undefined, position };
  }

  const reads: Sync<Omit<ChangeLog, 'deleted'>> = {
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

  /** Adds a change of this transaction. */
  function add(store: number, entry: LogEntry): void {
    const row = stores.of(store);
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
    insert.run(
      store,
      row.version,
      row.nextEntry(),
      event,
      Date.now(),
      user,
      token,
      request,
      plant,
      owner,
      name,
      tag,
    );
  }

  return {
    ...reads,
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
      for (const [version, number, owner, plant] of deletions) {
        scannedTo = { version, number };
        if (!reaches(write, owner)) continue;
        const found = findDeleted(store, plant);
        // An earlier deletion of the same plant is no entry of its own.
        if (found?.position.version === version && found.position.number === number)
          rows.push(found);
        if (++checked === maxCheckedDeletions || rows.length > limit) return { rows, scannedTo };
      }
      return { rows, scannedTo: deletions.length === maxScannedDeletions ? scannedTo : undefined };
    },

    /** Adds a change that is not decided by decide.ts, if there is a log. */
    addUnlessOff(store: number, entry: LogEntry): void {
      if (keepMs !== 0) add(store, entry);
    },

    /** Removes a bounded number of changes that are too old, as `maxRemovedChanges` describes. */
    removeOld(store: number): void {
      if (keepMs === undefined) return;
      const keptSince = Date.now() - keepMs;
      const [oldestAt = keptSince] = findOldest.get(store) ?? [];
      if (oldestAt < keptSince) removeOldest.run(store, keptSince);
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
