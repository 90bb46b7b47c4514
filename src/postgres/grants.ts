/**
 * What the sender of a request may do, in PostgreSQL: read in full only if no current grant is cached.
 */
import { randomInt } from 'node:crypto';
import {
  callerOf,
  familyOfUser,
  maxOwnersInReach,
  parseScopes,
  type Caller,
  type Claims,
  type Credential,
  type TokenCredential,
  type Grant,
  type Identified,
  type Identity,
  type ReceivedShare,
  type Role,
  type Scope,
} from '../access.ts';
import { Cache } from '../cache.ts';
import { unrevokedCaller } from '../identity-storage.ts';
import { familyOf } from '../own-tokens.ts';
import { Problem } from '../problem.ts';
import { tokenId } from '../token.ts';
import { prepared, type Row } from './connection.ts';
import type { Freshness } from './freshness.ts';
import type { Names } from './names.ts';
import type { Cluster } from './cluster.ts';
import type { BoundStatement, Pool } from './pool.ts';

/** A user, and the version of the grants of their store. */
type UserRow = readonly [
  user: number,
  storeName: string,
  userName: string,
  role: Role,
  removedAt: number | null,
  received: readonly ReceivedShare[],
  grantsVersion: number,
];

type TermsRow = readonly [
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
  family: string | null,
];
type TokenRow = readonly [...TermsRow, ...UserRow];

/** The shares in effect, as JSON: a list of lists is no type of SQL. */
const userColumns = `
  users.id, stores.name, users.name, users.role, users.removed_at,
  (
    SELECT coalesce(json_agg(json_build_array(received.owner, received.access)), '[]')
    FROM (
      SELECT shares.owner, shares.access FROM plant_store.shares
      WHERE shares.store = $1 AND shares.user_name = users.name
      ORDER BY shares.since, shares.owner LIMIT ${maxOwnersInReach - 1}
    ) AS received
  ),
  stores.grants`;

const selectByToken = `
  SELECT tokens.scopes, tokens.expires_at, tokens.revoked_at, tokens.family,
         ${userColumns}
  FROM plant_store.tokens
  JOIN plant_store.stores ON stores.store = tokens.store
  JOIN plant_store.users ON users.store = tokens.store AND users.id = tokens.user_id
  WHERE tokens.store = $1 AND stores.store = $1 AND users.store = $1 AND tokens.hash = $2`;

const selectByUser = `
  SELECT ${userColumns}
  FROM plant_store.stores JOIN plant_store.users ON users.store = stores.store
  WHERE stores.store = $1 AND users.store = $1 AND users.name = $2`;

export const grantSql = {
  findByToken: prepared<TokenRow>('find_grant_by_token', selectByToken),
  findByUser: prepared<UserRow>('find_grant_by_user', selectByUser),
  reviveUser: prepared(
    'revive_user',
    `
      UPDATE plant_store.users SET removed_at = NULL, role = $3
      WHERE store = $1 AND id = $2 AND removed_at IS NOT NULL`,
  ),
  // The user can have been removed once more since the claims were compared.
  reviveUserOfClaims: prepared(
    'revive_user_of_claims',
    `
      UPDATE plant_store.users SET removed_at = NULL, role = 'member'
      WHERE store = $1 AND id = $2 AND removed_at < $3`,
  ),
  changeGrantsVersion: prepared(
    'change_grants_version',
    'UPDATE plant_store.stores SET grants = $2 WHERE store = $1',
  ),
};

/** What a token grants its user. Without a role, the one of the user counts. */
interface Terms extends Pick<Grant, 'isStored' | 'family' | 'expiresAtMs' | 'revokedAtMs'> {
  scopes: readonly Scope[];
  role: Role | undefined;
}

function termsOfToken([scopes, expiresAt, revokedAt, family]: TermsRow, id: string): Terms {
  return {
    isStored: true,
    family: familyOf(family, id),
    scopes: parseScopes(scopes),
    role: undefined,
    expiresAtMs: expiresAt ?? undefined,
    revokedAtMs: revokedAt ?? undefined,
  };
}

function termsOfClaims({ scopes, role, expiresAtMs }: Claims, user: Identity): Terms {
  return {
    isStored: false,
    family: familyOfUser(user),
    scopes,
    role,
    expiresAtMs,
    revokedAtMs: undefined,
  };
}

/** Maximum number of cached names of stores. */
const maxKnownStores = 10_000;

/** What a statement has found for a credential. */
interface Found {
  store: number;
  terms: Terms;
  row: UserRow;
}

function grantOf(
  { tokenHash, store: named, claims }: Credential,
  { store, terms, row }: Found,
): Grant {
  const [user, storeName, userName, userRole, removedAt, received, version] = row;
  const { scopes, role = userRole, revokedAtMs = removedAt ?? undefined, ...rest } = terms;
  const identified = [version, Buffer.from(tokenHash).toString('latin1'), claims] as const;
  return {
    ...rest,
    caller: callerOf({ store, user, identified }, role, scopes, received),
    tokenId: tokenId(tokenHash, named),
    tokenHash,
    storeName,
    userName,
    role,
    revokedAtMs,
  };
}

/**
 * Identifies a caller again, in the transaction of a write that has locked the row of the store. Nothing for an operator,
 * who has no token.
 */
export function identifyAgain(
  caller: Pick<Caller, 'store' | 'identified'> | undefined,
): BoundStatement[] {
  return caller === undefined ? [] : [findAgain(caller.store, caller.identified)];
}

/** For a write that may have nothing to change. Rejects if the caller must not write. */
export async function checkAgain(
  cluster: Cluster,
  caller: Pick<Caller, 'store' | 'identified'>,
): Promise<void> {
  const { store, identified } = caller;
  const refusal = refusalOf(
    caller,
    await cluster.ofStore(store).read(...findAgain(store, identified)),
  );
  if (refusal !== undefined) throw refusal;
}

/** Why the caller must not write, by the rows of `identifyAgain`. */
export function refusalOf(
  caller: Pick<Caller, 'store' | 'identified'> | undefined,
  rows: readonly Row[] = [],
): Problem | undefined {
  if (caller === undefined) return undefined;
  const now = callerNow(caller.store, caller.identified, rows);
  return now instanceof Problem ? now : undefined;
}

/** The line of the caller's token, by the rows of `identifyAgain`. */
export function lineOf([found]: readonly Row[] = []): string | null {
  return (found as TokenRow | undefined)?.[3] ?? null; // only tokens of the service create others
}

export function findAgain(store: number, [, tokenHash, claims]: Identified): BoundStatement {
  return claims === undefined
    ? [grantSql.findByToken, [store, Buffer.from(tokenHash, 'latin1')]]
    : [grantSql.findByUser, [store, claims.userName]];
}

/** The caller by the rows of `findAgain`, or `invalid-token` if the token was revoked. */
export function callerNow(
  store: number,
  [, hash, claims]: Identified,
  [found]: readonly Row[],
): Caller | Problem {
  if (found === undefined) return unrevokedCaller(undefined);
  const tokenHash = Buffer.from(hash, 'latin1');
  return unrevokedCaller(
    grantOf(
      claims === undefined ? { tokenHash, store } : { tokenHash, claims },
      claims === undefined
        ? foundToken(store, '', found as TokenRow) // the columns of the statement
        : foundUser(store, claims, found as UserRow),
    ),
  );
}

function foundToken(
  store: number,
  id: string,
  [scopes, expiresAt, revokedAt, family, ...row]: TokenRow,
): Found {
  return { store, terms: termsOfToken([scopes, expiresAt, revokedAt, family], id), row };
}

function foundUser(store: number, claims: Claims, row: UserRow): Found {
  return { store, terms: termsOfClaims(claims, { store, user: row[0] }), row };
}

/** How the user of a JWT comes back who was removed before it was issued. */
function reviveUserOfClaims({ store, user }: Identity, { issuedAtMs }: Claims): BoundStatement {
  return [grantSql.reviveUserOfClaims, [store, user, issuedAtMs]];
}

/**
 * The first statement of each transaction that changes grants. It locks the row of the store: nothing is written for a
 * token that is being revoked.
 */
export function changeGrantsVersion(store: number): BoundStatement {
  return [grantSql.changeGrantsVersion, [store, randomInt(2 ** 48 - 1)]]; // its largest range
}

/** If this user was removed, makes a new user of them, who has nothing of the former one. */
export function reviveUser({ store, user }: Identity, role: Role): BoundStatement {
  return [grantSql.reviveUser, [store, user, role]];
}

export class Grants {
  readonly #cluster: Cluster;
  readonly #freshness: Freshness;
  readonly #names: Names;
  /**
   * The stores of identity providers' users, by name, so that the node of the name is not asked each time. A restore can
   * give them other numbers, so the name is compared.
   */
  readonly #stores = new Cache<{ store: number }>(maxKnownStores);

  constructor(cluster: Cluster, freshness: Freshness, names: Names) {
    this.#cluster = cluster;
    this.#freshness = freshness;
    this.#names = names;
  }

  /** The server that a request with this credential needs first. */
  serverOf({ store, claims }: Credential): Pool {
    if (claims === undefined) return this.#cluster.ofStore(store);
    const known = this.#stores.get(claims.storeName);
    if (known !== undefined) return this.#cluster.ofStore(known.store);
    return this.#names.serverOf(claims.storeName);
  }

  async identify(
    credential: Credential,
    onCheck: (cached: Grant) => void = () => {},
  ): Promise<Grant | undefined> {
    const { tokenHash, claims } = credential;
    const key = Buffer.from(tokenHash).toString('latin1');
    const cached = this.#freshness.getGrant(key);
    if (cached !== undefined) {
      const { grant, version } = cached;
      const current = this.#freshness.grantsVersion(grant.caller.store);
      onCheck(grant);
      if ((await current) === version) return grant;
    }
    const found = await (credential.claims === undefined
      ? this.#findToken(credential)
      : this.#findUser(credential.claims));
    if (found === undefined) return undefined;
    const { store, row } = found;
    const [user, , , , removedAt, , version] = row;
    if (claims !== undefined && removedAt !== null && removedAt < claims.issuedAtMs) {
      const revive = [changeGrantsVersion(store), reviveUserOfClaims({ store, user }, claims)];
      await this.#cluster.ofStore(store).transact(revive);
      return this.identify(credential);
    }
    const grant = grantOf(credential, found);
    this.#freshness.setGrant(key, grant, version);
    return grant;
  }

  async #findToken({ tokenHash, store }: TokenCredential): Promise<Found | undefined> {
    const values = [store, Buffer.from(tokenHash)];
    const [row] = await this.#cluster.read(store, grantSql.findByToken, values);
    return row && foundToken(store, tokenId(tokenHash, store), row);
  }

  async #findUser(claims: Claims): Promise<Found | undefined> {
    const { storeName, userName } = claims;
    const known = this.#stores.get(storeName)?.store;
    const found = known === undefined ? undefined : await this.#findUserIn(known, claims);
    if (found !== undefined) return found;
    this.#stores.delete(storeName);
    const { store } = await this.#names.findOrCreateUser(storeName, userName, 'member');
    const created = await this.#findUserIn(store, claims);
    if (created !== undefined) this.#stores.set(storeName, { store });
    return created;
  }

  async #findUserIn(store: number, claims: Claims): Promise<Found | undefined> {
    const values = [store, claims.userName];
    const [row] = await this.#cluster.read(store, grantSql.findByUser, values);
    if (row?.[1] !== claims.storeName) return undefined;
    return foundUser(store, claims, row);
  }
}
