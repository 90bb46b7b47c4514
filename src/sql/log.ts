/**
 * The log of changes on both engines. Who adds to it has locked the row of the store in the same transaction.
 */
import { reaches, userKey } from '../access/access.ts';
import { idBytes, tokenId } from '../access/token.ts';
import {
  changeEvents,
  keptSince,
  leftCrc,
  maxFollowed,
  maxPosition,
  type ChangeLog,
  type DeletedPlant,
  type FollowedChange,
  type LogEntry,
  type PlantChange,
} from '../log/change-log.ts';
import { changesNotKept } from '../log/feed.ts';
import type { DeletionInLog } from '../plants/decide.ts';
import { eachText, plantOf, textColumns, textFields, type PlantRow } from '../plants/fields.ts';
import { scan } from '../shared/scan.ts';
import { openRetention, retentionSql } from './retention.ts';
import { sql } from './statement.ts';
import { writeOf, type Engine } from './write.ts';

/** Deletions that a step of a bin reads. The largest, whose text is emoji, take less than 1 ms on SQLite. */
const maxScannedDeletions = 120;

/** The columns of the log, and their types in PostgreSQL. */
export const logColumns = {
  store: 'bigint',
  position: 'bigint',
  previous: 'bigint',
  event: 'smallint',
  at: 'bigint',
  user_id: 'bigint',
  token: 'bytea',
  request: 'bytea',
  plant: 'bigint',
  owner: 'bigint',
  is_restorable: 'smallint',
  left_crc: 'bigint',
  ...eachText(() => 'text'),
};

/** The values of the columns after the first. Each engine makes 16 bytes of the text of the request id. */
export function valuesOf(
  entry: LogEntry,
  atMs: number,
  isRestorable: boolean,
): (number | string | Buffer | null)[] {
  const { position, previous = null, event, by, request } = entry;
  const { plant = null, owner = null, left } = entry;
  return [
    position,
    previous,
    changeEvents.indexOf(event),
    atMs,
    by?.[2] ?? null,
    by === undefined ? null : tokenBytes(by[1], by[3] !== undefined),
    request ?? null,
    plant,
    owner,
    isRestorable ? 1 : 0,
    left === undefined ? null : leftCrc(left),
    ...textFields.map((field) => entry[field] ?? null),
  ];
}

/** What the id of a token has of its hash. One byte more marks a JWT, whose id has no store. */
function tokenBytes(hash: string, isJwt: boolean): Buffer {
  return Buffer.from(hash.slice(0, isJwt ? idBytes + 1 : idBytes), 'latin1');
}

function tokenOf(store: number, bytes: Uint8Array): string {
  return tokenId(bytes, bytes.length > idBytes ? undefined : store);
}

/** A UUID from its bytes (RFC 9562, section 4). */
function uuidOf(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/**
 * The first change to a plant that another program has added. Before it is in the log, `endDeletionsOf` ends the
 * deletion of an earlier plant with this id: there can be only one to restore.
 */
export function isFirstKnown({ previous }: LogEntry): boolean {
  return previous === 0;
}

type ChangeRow = readonly [
  event: number,
  at: number,
  user: string | null,
  owner: string | null,
  ...texts: (string | null)[],
];

type LogRow = readonly [
  position: number,
  plant: number | null,
  token: Uint8Array | null,
  request: Uint8Array | null,
  ...ChangeRow,
];

/** The position of the store, and a change; without one, the rest is null. */
type FollowedRow = readonly [
  last: number,
  removedPosition: number | null,
  position: number | null,
  event: number,
  at: number,
  user: string | null,
  plant: number | null,
  previous: number | null,
  owner: number | null,
  id: number | null,
  ownerNow: number,
  positionNow: number,
  ...textsBeforeAndNow: (string | null)[],
];

/** A deletion whose plant has not come back. */
type DeletionRow = readonly [
  position: number,
  at: number,
  user: number | null,
  removedPosition: number,
  ...PlantRow,
];

const nameOf = (user: string) =>
  `(SELECT users.name FROM plant_store.users WHERE users.store = $1 AND users.id = ${user})`;
const deletionsFrom = (index: string) => `
    FROM plant_store.changes /* INDEXED BY ${index} */ JOIN plant_store.users
      ON users.store = changes.store AND users.id = changes.owner
    WHERE users.store = $1 AND is_restorable = 1 AND changes.store = $1`;
const restorablePlants = deletionsFrom('restorable_plants');
const columnsOf = (table: string) => textFields.map((field) => `${table}.${field}`).join(', ');
const deletionColumns = `position, at, user_id, removed_position, plant, owner, ${columnsOf('changes')}`;
const changeColumns = `event, at, ${nameOf('user_id')}, ${nameOf('owner')}, ${textColumns}`;

export const logSql = {
  findDeletions: sql<DeletionRow>`
    SELECT ${deletionColumns} ${restorablePlants} AND plant = ANY ($2::bigint[])`,
  scanDeletions: sql<DeletionRow>`
    SELECT ${deletionColumns} ${deletionsFrom('restorable_changes')}
      AND changes.position BETWEEN 1 AND $2
    ORDER BY changes.position DESC LIMIT ${maxScannedDeletions}`,
  endDeletions: sql`
    UPDATE plant_store.changes SET is_restorable = 0
    WHERE changes.store = $1 AND changes.position = ANY ($2::bigint[])`,
  endDeletionsOf: sql`
    UPDATE plant_store.changes /* INDEXED BY restorable_plants */ SET is_restorable = 0
    WHERE store = $1 AND is_restorable = 1 AND plant = ANY ($2::bigint[])`,
  // Of the plant, or of its deletion (`restorable`). One statement: after a change meanwhile, one of them is still seen.
  findLast: sql<readonly [owner: number, position: number]>`
    SELECT owner, position FROM plant_store.plants WHERE store = $1 AND id = $2
    UNION ALL
    SELECT owner, position ${restorablePlants}
      AND plant = $2 AND at >= $3 AND removed_position < position
    LIMIT 1`,
  // Each change has the position of the one before: no index has the changes of a plant.
  history: sql<ChangeRow>`
    WITH RECURSIVE chain AS (
      SELECT previous, event, at, user_id, owner, ${textColumns} FROM plant_store.changes
      WHERE changes.store = $1 AND changes.position = $2
      UNION ALL
      SELECT changes.previous, changes.event, changes.at, changes.user_id, changes.owner,
             ${columnsOf('changes')}
      FROM chain JOIN plant_store.changes
        ON changes.store = $1 AND changes.position = chain.previous
    )
    SELECT ${changeColumns} FROM chain LIMIT $3::bigint`,
  position: sql<readonly [position: number]>`
    SELECT position FROM plant_store.stores WHERE store = $1`,
  // One statement, so that the position of the store is that of the last change.
  follow: sql<FollowedRow>`
    SELECT stores.position,
      (SELECT removed_position FROM plant_store.users WHERE users.store = $1 AND users.id = $4),
      changes.position, event, at, ${nameOf('changes.user_id')}, plant, changes.previous,
      changes.owner, plants.id, plants.owner, plants.position,
      ${columnsOf('changes')}, ${columnsOf('plants')}
    FROM plant_store.stores
    LEFT JOIN plant_store.changes
      ON changes.store = $1 AND changes.position BETWEEN $2 AND $3
    LEFT JOIN plant_store.plants ON plants.store = $1 AND plants.id = changes.plant
    WHERE stores.store = $1
    ORDER BY changes.position`,
  list: sql<LogRow>`
    SELECT position, plant, token, request, ${changeColumns}
    FROM plant_store.changes
    WHERE changes.store = $1 AND changes.position BETWEEN $2 AND ${maxPosition}
    ORDER BY changes.position LIMIT $3`,
};

const positionsSql = sql<readonly [store: number, position: number]>`
  SELECT store, position FROM plant_store.stores WHERE store = ANY ($1::bigint[])`;

export const logWrites = {
  /** For the store in a restored backup. */
  logRestore: (store: number, backupName: string) =>
    writeOf({
      store,
      reads: [],
      decide: () => ({
        result: undefined,
        entries: [{ event: 'backup-restored', name: backupName }],
      }),
    }),
};

/** `keepMs` as in `WriteSettings`. */
export function openLog(engine: Engine, keepMs: number | undefined): ChangeLog {
  /** Stale never: a restore replaces the file, and a process opens one file. */
  let epoch: number | undefined;

  return {
    async history({ store, read }, plant, limit) {
      const since = keptSince(keepMs);
      const [last] = await engine.read(store, logSql.findLast, [store, plant, since]);
      if (last === undefined || !reaches(read, last[0])) return undefined;
      const rows = await engine.read(store, logSql.history, [store, last[1], limit]);
      return rows.map(toPlantChange).filter(({ atMs }) => atMs >= since);
    },

    async deleted(caller, query) {
      const { store, write } = caller;
      const turn = userKey(caller);
      const since = keptSince(keepMs);
      const found = await scan(query, async (after: number) => {
        const rows = await engine.read(store, logSql.scanDeletions, [store, after - 1], turn);
        const plants = rows.flatMap((row) => restorable(row, since) ?? []);
        return {
          rows: plants.filter(({ owner }) => reaches(write, owner)),
          scannedTo: rows.length < maxScannedDeletions ? undefined : rows.at(-1)?.[0],
        };
      });
      const plants = found.slice(0, query.limit);
      return { plants, next: found.length > query.limit ? plants.at(-1)?.position : undefined };
    },

    async position(store) {
      const [row] = await engine.read(store, logSql.position, [store]);
      return row?.[0] ?? 0;
    },

    async positions(stores) {
      return new Map(await engine.read(undefined, positionsSql, [stores]));
    },

    async follow({ store, user }, from) {
      if (keepMs === 0) throw changesNotKept();
      epoch ??= (await engine.read(undefined, retentionSql.epoch, []))[0]?.[0] ?? 0;
      const since = keptSince(keepMs);
      const values = [store, from, from + maxFollowed, user];
      const rows = await engine.read(store, logSql.follow, values, userKey({ store, user }));
      const changes = rows
        .flatMap((row) => toFollowed(row) ?? [])
        .filter(({ position, atMs }) => position === from || atMs >= since);
      const [[last, removedPosition] = [0, 0]] = rows;
      return { epoch, last, removedPosition: removedPosition ?? 0, changes };
    },

    async list({ store: name, user, plant, sinceMs = 0, after = 0, limit }) {
      const store = await engine.findStore(name);
      if (store === undefined) return { changes: [], next: undefined };
      const rows = await engine.read(store, logSql.list, [store, after + 1, limit]);
      const fromMs = Math.max(sinceMs, keptSince(keepMs));
      const changes = rows
        .map(([position, plantId, token, request, ...change]) => ({
          position,
          plant: plantId ?? undefined,
          token: token === null ? undefined : tokenOf(store, token),
          request: request === null ? undefined : uuidOf(request),
          ...toPlantChange(change),
        }))
        .filter(
          (change) =>
            change.atMs >= fromMs &&
            (user === undefined || change.user === user) &&
            (plant === undefined || change.plant === plant),
        );
      return { changes, next: rows.length === limit ? rows.at(-1)?.[0] : undefined };
    },

    ...openRetention(engine),
  };
}

/** What a change to the plant needs of its deletion. */
export function deletionOf(row: DeletionRow, keptSinceMs: number): DeletionInLog {
  const [position, , , , id, owner, ...texts] = row;
  const isRestorable = restorable(row, keptSinceMs) !== undefined;
  return { position, plant: isRestorable ? plantOf(id, owner, texts) : undefined };
}

/** The plant of the deletion; undefined if the log shows it no more, or if its owner was removed since. */
function restorable(row: DeletionRow, keptSinceMs: number): DeletedPlant | undefined {
  const [position, deletedAtMs, user, removedPosition, id, owner, ...texts] = row;
  if (deletedAtMs < keptSinceMs || removedPosition >= position) return undefined;
  return { ...plantOf(id, owner, texts), position, deletedAtMs, deletedBy: user ?? undefined };
}

function toFollowed([, , position, event, atMs, ...row]: FollowedRow): FollowedChange | undefined {
  const [user, plant, previous, owner, id, ownerNow, positionNow, ...texts] = row;
  if (position === null) return undefined;
  const now = texts.slice(textFields.length).map((text) => text ?? '');
  return {
    position,
    event: changeEvents[event] ?? 'updated',
    atMs,
    user: user ?? undefined,
    plant: plant ?? undefined,
    previous: previous ?? undefined,
    ownerBefore: owner ?? undefined,
    ...eachText((_, at) => texts[at] ?? undefined),
    now: id === null ? undefined : { ...plantOf(id, ownerNow, now), position: positionNow },
  };
}

function toPlantChange([event, atMs, user, owner, ...texts]: ChangeRow): PlantChange {
  return {
    event: changeEvents[event] ?? 'updated',
    atMs,
    user: user ?? undefined,
    owner: owner ?? undefined,
    ...eachText((_, at) => texts[at] ?? undefined),
  };
}
