/**
 * Users and stores on both engines.
 */
import type { Identified, Identity, Role, ShareAccess } from '../access/access.ts';
import { tokenId } from '../access/token.ts';
import {
  lastManager,
  managerRequired,
  type Author,
  type UserStorage,
} from '../access/user-storage.ts';
import { maxPosition, type NewEntry } from '../log/change-log.ts';
import { textColumns, textsOf, plantOf, type PlantRow } from '../plants/fields.ts';
import { maxId } from '../plants/ids.ts';
import type { StoredPlant } from '../plants/plant-storage.ts';
import { sql, type Query, type Row } from './statement.ts';
import { webhookSql } from './webhooks.ts';
import { writeOf, type Engine } from './write.ts';

type TokenRow = readonly [hash: Uint8Array, scopes: string];
type SharedRow = readonly [owner: number, user: string, access: ShareAccess];
/** Without a role, the user was removed. `removedAt` is the time of the last removal, whoever has the name since. */
type UserRow = readonly [id: number, role: Role | null, removedAt: number | null];

/** Both bounds, because PostgreSQL would otherwise read the table if all plants have one owner. */
const plantsOfUser = `store = $1 AND (owner, id) > ($2, 0) AND (owner, id) <= ($2, ${maxId})`;
const nameOfUser = 'SELECT name FROM plant_store.users WHERE users.store = $1 AND users.id = $2';

export const userSql = {
  listStores: sql<readonly [name: string, store: number]>`
    SELECT name, store FROM plant_store.named_stores WHERE name > $1 ORDER BY name LIMIT $2`,
  describeStore: sql<readonly [lastId: number, users: number]>`
    SELECT last_id, (
      SELECT count(*) FROM plant_store.users WHERE users.store = $1 AND role IS NOT NULL)
    FROM plant_store.stores WHERE store = $1`,
  list: sql<
    readonly [name: string, id: number, role: Role, activeTokens: number, lastUse: number | null]
  >`
    SELECT name, id, role, (
      SELECT count(*) FROM plant_store.tokens /* INDEXED BY tokens_by_user */
      WHERE tokens.store = $1 AND user_id = users.id AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > $4)), (
      SELECT max(last_used_at) FROM plant_store.tokens /* INDEXED BY tokens_by_user */
      WHERE tokens.store = $1 AND user_id = users.id)
    FROM plant_store.users
    WHERE users.store = $1 AND name > $2 AND role IS NOT NULL ORDER BY name LIMIT $3`,
  find: sql<UserRow>`
    SELECT id, role, removed_at FROM plant_store.users WHERE store = $1 AND name = $2`,
  findInvitations: sql<readonly [user: number, hash: Uint8Array]>`
    SELECT user_id, hash FROM plant_store.tokens /* INDEXED BY tokens_by_user */
    WHERE store = $1 AND user_id = ANY ($2::bigint[])
      AND uses > 0 AND revoked_at IS NULL AND expires_at > $3`,
  namesOf: sql<readonly [id: number, name: string]>`
    SELECT id, name FROM plant_store.users WHERE store = $1 AND id = ANY ($2::bigint[])`,
  lastUser: sql<readonly [lastUser: number]>`
    SELECT last_user FROM plant_store.stores WHERE store = $1`,
  setLastUser: sql`UPDATE plant_store.stores SET last_user = $2 WHERE store = $1`,
  add: sql`INSERT INTO plant_store.users (store, id, name, role) VALUES ($1, $2, $3, $4)`,
  setRole: sql`UPDATE plant_store.users SET role = $3 WHERE store = $1 AND id = $2`,
  findActiveTokens: sql<TokenRow>`
    SELECT hash, scopes FROM plant_store.tokens /* INDEXED BY tokens_by_user */
    WHERE store = $1 AND user_id = $2 AND revoked_at IS NULL AND hash <> $3 ORDER BY hash`,
  revokeTokens: sql`
    UPDATE plant_store.tokens /* INDEXED BY tokens_by_user */ SET revoked_at = $3
    WHERE store = $1 AND user_id = $2 AND revoked_at IS NULL AND hash <> $4`,
  findGiven: sql<SharedRow>`
    SELECT owner, user_name, access FROM plant_store.shares WHERE store = $1 AND owner = $2
    ORDER BY user_name`,
  endGiven: sql`DELETE FROM plant_store.shares WHERE store = $1 AND owner = $2`,
  findReceived: sql<SharedRow>`
    SELECT owner, user_name, access FROM plant_store.shares
    WHERE store = $1 AND user_name = (${nameOfUser}) ORDER BY since, owner LIMIT $3`,
  endReceived: sql`
    DELETE FROM plant_store.shares
    WHERE store = $1 AND owner = ANY ($3::bigint[]) AND user_name = (${nameOfUser})`,
  findPlants: sql<readonly [position: number, ...PlantRow]>`
    SELECT position, id, owner, ${textColumns} FROM plant_store.plants
    WHERE store = $1 AND id = ANY ($2::bigint[])`,
  findMoved: sql<readonly [position: number, ...PlantRow]>`
    SELECT position, id, owner, ${textColumns} FROM plant_store.plants WHERE ${plantsOfUser}
    ORDER BY owner, id LIMIT $3`,
  /** Whether the user is in the store, and has been since the position. */
  isHere: sql`
    SELECT 1 FROM plant_store.users
    WHERE store = $1 AND id = $2 AND role IS NOT NULL AND removed_position < $3`,
  isActive: sql`
    SELECT 1 FROM plant_store.users WHERE store = $1 AND id = $2 AND role IS NOT NULL`,
  roleOf: sql<readonly [role: Role | null]>`
    SELECT role FROM plant_store.users WHERE store = $1 AND id = $2`,
  isManager: sql`
    SELECT 1 FROM plant_store.users WHERE store = $1 AND id = $2 AND role = 'manager'`,
  /** Two managers: if there is no second one, a manager is the last. */
  managers: sql<readonly [user: number]>`
    SELECT id FROM plant_store.users WHERE store = $1 AND role = 'manager' ORDER BY id LIMIT 2`,
  move: sql`
    UPDATE plant_store.plants SET owner = $3, position = $4 WHERE store = $1 AND id = $2`,
  ownsAnything: sql`
    SELECT 1 FROM plant_store.stores
    WHERE store = $1
      AND (EXISTS (SELECT 1 FROM plant_store.shares WHERE shares.store = $1 AND owner = $2)
        OR EXISTS (SELECT 1 FROM plant_store.plants WHERE plants.${plantsOfUser}))`,
  remove: sql`
    UPDATE plant_store.users SET role = NULL, removed_at = $3, removed_position = $4
    WHERE store = $1 AND id = $2`,
};

/** A user with a name, as `userSql.find` and `userSql.lastUser` have read them. */
interface Named {
  store: number;
  name: string;
  found: UserRow | undefined;
  last: readonly [user: number] | undefined;
}

/**
 * What makes the user one who exists. A removed user becomes a new one, who inherits no plants, shares or tokens. The
 * role of a user who exists changes only if one is given.
 */
export function ensureUser({ store, name, found, last: [lastUser] = [0] }: Named, role?: Role) {
  const [user = lastUser + 1, before = null] = found ?? [];
  const isNew = before === null;
  const after = role ?? before ?? 'member';
  const writes: Query[] =
    found === undefined
      ? [
          [userSql.setLastUser, [store, user]],
          [userSql.add, [store, user, name, after]],
        ]
      : [[userSql.setRole, [store, user, after]]];
  const entry: NewEntry = {
    event: isNew ? 'user-created' : 'role-changed',
    owner: user,
    tag: after,
  };
  const isSame = before === after;
  return { user, writes: isSame ? [] : writes, entries: isSame ? [] : [entry] };
}

export const userWrites = {
  /** The user of a JWT. One who was removed since it was issued stays removed. */
  addUser: (store: number, name: string, issuedAtMs: number) =>
    writeOf({
      store,
      reads: [
        [userSql.find, [store, name]],
        [userSql.lastUser, [store]],
      ],
      decide([[found], [last]]) {
        const [, role, removedAtMs] = found ?? [];
        if (role || (removedAtMs ?? 0) >= issuedAtMs) return { result: undefined };
        const { writes, entries } = ensureUser({ store, name, found, last });
        return { result: undefined, writes: () => writes, entries };
      },
    }),

  setRole: (store: number, name: string, role: Role, by: Identified, request?: string) =>
    writeOf({
      store,
      by,
      request,
      reads: [
        [userSql.find, [store, name]],
        [userSql.managers, [store]],
        isAuthorManager(store, by),
      ],
      decide([[found], managers, [author]]) {
        assertManager(by, author);
        const [user, before = null] = found ?? [];
        if (user === undefined || before === null) return { result: false };
        if (role !== 'manager') assertNotLast(user, managers);
        const { writes, entries } = ensureUser({ store, name, found, last: undefined }, role);
        return { result: true, writes: () => writes, entries };
      },
    }),

  /** The decision of a manager to remove a user, who is a member from here on. */
  beginRemoval: ({ store, user }: Identity, { by, request }: Author) =>
    writeOf({
      store,
      by,
      request,
      reads: [
        [userSql.managers, [store]],
        [userSql.roleOf, [store, user]],
        isAuthorManager(store, by),
      ],
      decide([managers, [[role] = [null]], [author]]) {
        assertManager(by, author);
        assertNotLast(user, managers);
        if (role !== 'manager') return { result: undefined };
        const tag = 'member';
        return {
          result: undefined,
          writes: () => [[userSql.setRole, [store, user, tag]]],
          entries: [{ event: 'role-changed', owner: user, tag }],
        };
      },
    }),

  endAccess: (
    { store, user }: Identity,
    revokedAtMs: number,
    limit: number,
    { by, request }: Author = {},
  ) => {
    const kept = Buffer.from(by?.[1] ?? '', 'latin1'); // removes the user, and perhaps its own
    return writeOf({
      store,
      by,
      request,
      reads: [
        [userSql.findActiveTokens, [store, user, kept]],
        [userSql.findGiven, [store, user]],
        [userSql.findReceived, [store, user, limit]],
      ],
      decide([tokens, given, received]) {
        const shares = [...given, ...received];
        const owners = received.map(([owner]) => owner);
        return {
          result: shares.length,
          writes: () => [
            [userSql.revokeTokens, [store, user, revokedAtMs, kept]],
            [userSql.endGiven, [store, user]],
            [userSql.endReceived, [store, user, owners]],
            [webhookSql.removeOfUser, [store, user]],
          ],
          entries: [
            ...revocations(store, user, tokens),
            ...shares.map(([owner, name, tag]): NewEntry => ({
              event: 'share-ended',
              owner,
              name,
              tag,
            })),
          ],
        };
      },
    });
  },

  movePlants: (
    { store, user: from }: Identity,
    to: number,
    limit: number,
    { by, request }: Author = {},
    only?: StoredPlant & { since: number },
  ) =>
    writeOf({
      store,
      by,
      request,
      reads: [
        [userSql.isHere, [store, to, only?.since ?? maxPosition]],
        only === undefined
          ? [userSql.findMoved, [store, from, limit]]
          : [userSql.findPlants, [store, [only.id]]],
      ],
      decide([heirs, plants]) {
        const found = plants.filter(([position]) => position === (only?.position ?? position));
        const moved = heirs.length === 0 ? [] : found;
        return {
          result: moved.length,
          writes: (positions) =>
            moved.map(([, id], at) => [userSql.move, [store, id, to, positions[at]]]),
          entries: moved.map(([previous, plant, owner, ...texts]) => ({
            event: 'moved',
            plant,
            previous,
            owner,
            ...textsOf(plantOf(plant, owner, texts)),
            left: plantOf(plant, to, texts),
          })),
        };
      },
    }),

  removeUser: ({ store, user }: Identity, removedAtMs: number, { by, request }: Author = {}) =>
    writeOf({
      store,
      by,
      request,
      reads: [
        [userSql.ownsAnything, [store, user]],
        [userSql.isActive, [store, user]],
        [userSql.findActiveTokens, [store, user, noHash]],
      ],
      decide([owned, [active], tokens]) {
        if (owned.length > 0) return { result: false };
        if (active === undefined) return { result: true };
        return {
          result: true,
          writes: ([position]) => [
            [userSql.remove, [store, user, removedAtMs, position]],
            [userSql.revokeTokens, [store, user, removedAtMs, noHash]],
            [webhookSql.removeOfUser, [store, user]],
          ],
          entries: [{ event: 'user-removed', owner: user }, ...revocations(store, user, tokens)],
        };
      },
    }),
};

const noHash = Buffer.alloc(0);

export function isAuthorManager(store: number, by: Identified | undefined): Query {
  return [userSql.isManager, [store, by?.[2] ?? 0]];
}

/** Whether the author is a manager now, by the claims of a JWT or the row of `isAuthorManager`. */
export function isManager([, , , claims]: Identified, row: Row | undefined): boolean {
  return claims?.role === undefined ? row !== undefined : claims.role === 'manager';
}

/** Throws unless the author is a manager now. */
export function assertManager(by: Identified | undefined, row: Row | undefined): void {
  if (by !== undefined && !isManager(by, row)) throw managerRequired();
}

/** Users cannot leave a store without managers. Operators can. */
function assertNotLast(user: number, managers: readonly (readonly [user: number])[]): void {
  if (managers.length === 1 && managers[0]?.[0] === user) throw lastManager();
}

function revocations(store: number, owner: number, tokens: readonly TokenRow[]): NewEntry[] {
  return tokens.map(([hash, tag]) => ({
    event: 'token-revoked',
    owner,
    name: tokenId(hash, store),
    tag,
  }));
}

export function openUsers(engine: Engine): UserStorage {
  return {
    async listStores({ after = '', limit }) {
      const rows = await engine.read(undefined, userSql.listStores, [after, limit]);
      return Promise.all(
        rows.map(async ([store, number]) => {
          const [row] = await engine.read(number, userSql.describeStore, [number]);
          const [lastId = 0, users = 0] = row ?? []; // its first user is being created
          return { store, users, lastId };
        }),
      );
    },

    async list(store, { after = '', limit }) {
      const number = await engine.findStore(store);
      if (number === undefined) return [];
      const nowMs = Date.now();
      const rows = await engine.read(number, userSql.list, [number, after, limit, nowMs]);
      const ids = rows.map(([, id]) => id);
      const found = await engine.read(number, userSql.findInvitations, [number, ids, nowMs]);
      const invitations = Map.groupBy(found, ([user]) => user);
      return rows.map(([user, id, role, activeTokens, lastUse]) => ({
        store,
        user,
        id,
        role,
        activeTokens,
        lastUsedAtMs: lastUse ?? undefined,
        invitations: invitations.get(id)?.map(([, hash]) => tokenId(hash, number)),
      }));
    },

    async find(storeName, userName = '') {
      const store = await engine.findStore(storeName);
      if (store === undefined) return { store, user: undefined };
      const [row] = await engine.read(store, userSql.find, [store, userName]);
      if (row === undefined) return { store, user: undefined };
      const [user, role] = row;
      return { store, user: { store, user, role: role ?? undefined } };
    },

    async namesOf(store, users) {
      const numbers = [...new Set(users)];
      return new Map(await engine.read(store, userSql.namesOf, [store, numbers]));
    },

    setRole: ({ store, identified }, ...args) =>
      engine.write('setRole', store, args[0], args[1], identified, args[2]),
    beginRemoval: (...args) => engine.write('beginRemoval', ...args),
    endAccess: (...args) => engine.write('endAccess', ...args),
    movePlants: (...args) => engine.write('movePlants', ...args),
    forget: (...args) => engine.write('forgetUser', ...args),
    remove: (...args) => engine.write('removeUser', ...args),
  };
}
