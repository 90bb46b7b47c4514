/**
 * Who is calling, on SQLite: what a token or a JWT grants, and whether that has changed since it was read.
 */
import {
  maxOwnersInReach,
  type Caller,
  type Claims,
  type Credential,
  type Grant,
  type Identified,
  type ReceivedShare,
} from '../../access/access.ts';
import {
  grantOf,
  unrevokedCaller,
  type TokenTerms,
  type UserRow,
} from '../../access/identity-rows.ts';
import type { Prepare } from '../driver.ts';

/** The shares in effect of the user with a name. */
const receivedShares = `
  FROM shares INDEXED BY shares_by_user JOIN users ON users.store = shares.store AND users.id = shares.owner
  WHERE shares.store = :store AND user_name = :user
  ORDER BY since, owner LIMIT ${maxOwnersInReach - 1}`;

const userColumns = 'users.store, users.id, stores.name, users.name, users.role, users.removed_at';

export type Grants = ReturnType<typeof openGrants>;

export function openGrants(prepare: Prepare) {
  const countChanges = prepare<[count: number]>('SELECT count FROM grant_changes');
  const findToken = prepare<readonly [...UserRow, ...TokenTerms]>(`
    SELECT ${userColumns}, tokens.scopes, tokens.expires_at, tokens.revoked_at, tokens.family
    FROM tokens JOIN stores USING (store) JOIN users ON users.store = tokens.store AND users.id = tokens.user_id
    WHERE tokens.store = ? AND tokens.hash = ?`);
  const findUser = prepare<UserRow>(`
    SELECT ${userColumns} FROM stores JOIN users USING (store)
    WHERE stores.name = ? AND users.name = ?`);
  const findReceived = prepare<ReceivedShare>(`SELECT owner, access ${receivedShares}`);

  /** The version of all grants; undefined if it is not known. */
  let currentVersion: number | undefined;

  function readVersion(): number {
    return countChanges.get()?.[0] ?? 0;
  }

  function find(credential: Credential): Grant | undefined {
    const { tokenHash, claims, store: ofToken } = credential;
    // Comes first: if a failed read has ended the transaction, later changes must still make the grant stale.
    const version = readVersion();
    const row = claims === undefined ? findToken.get(ofToken, tokenHash) : userOf(claims);
    if (row === undefined) return undefined;
    const [store, user, storeName, userName, role, removedAt, ...terms] = row;
    const isManager = (claims?.role ?? role) === 'manager';
    const received = isManager ? [] : findReceived.all({ store, user: userName });
    const userRow = [store, user, storeName, userName, role, removedAt] as const;
    return grantOf(credential, userRow, terms, received, version);
  }

  /** A JWT that was issued after the removal of its user is for a new one. */
  function userOf({ storeName, userName, issuedAtMs }: Claims): UserRow | undefined {
    const row = findUser.get(storeName, userName);
    const removedAt = row?.[5] ?? Infinity;
    return removedAt < issuedAtMs ? undefined : row;
  }

  return {
    /** Each batch of reads calls it in its transaction if another connection has written. */
    refresh(): void {
      currentVersion = readVersion();
    },

    /** The known grant if it is current. Undefined if there is no such token, or if the user of a JWT has to be created. */
    current(credential: Credential, known?: Grant): Grant | undefined {
      const isCurrent = known !== undefined && known.caller.identified[0] === currentVersion;
      return isCurrent ? known : find(credential);
    },

    /**
     * For writes: undefined if no grant has changed since the caller was identified. Otherwise identifies them again, and
     * throws `invalid-token` if their token was revoked.
     */
    callerSince(store: number, [version, key, , , claims]: Identified): Caller | undefined {
      currentVersion ??= readVersion();
      if (version === currentVersion) return undefined;
      const tokenHash = Buffer.from(key, 'latin1');
      const credential = claims === undefined ? { tokenHash, store } : { tokenHash, claims };
      return unrevokedCaller(find(credential));
    },

    /** Call it after each write that can change grants, and after a rollback. */
    clearVersion(): void {
      currentVersion = undefined;
    },
  };
}
