/**
 * What the sender of a request may do, in PostgreSQL: read in full only if the known grant is not current.
 */
import {
  maxOwnersInReach,
  userKey,
  type Caller,
  type Credential,
  type Grant,
  type Identified,
  type Identity,
  type JwtCredential,
  type TokenCredential,
  type ReceivedShare,
  type Role,
} from '../../access/access.ts';
import { grantOf, unrevokedCaller, type TokenTerms } from '../../access/identity-rows.ts';
import { Problem } from '../../problem.ts';
import { sql, type Row } from '../pool/connection.ts';
import { problemOf } from '../errors.ts';
import { newGrantsVersion, type GrantsVersions } from './grants-version.ts';
import type { Names } from './names.ts';
import type { Cluster } from '../citus/cluster.ts';
import type { BoundStatement } from '../pool/pool.ts';
import { withTimeout } from '../pool/timeout.ts';

/** The terms of a token, its user, and the version of the grants of their store. A JWT has no terms. */
type GrantRow = readonly [
  ...TokenTerms,
  user: number,
  storeName: string,
  userName: string,
  role: Role,
  removedAt: number | null,
  received: readonly ReceivedShare[],
  grantsVersion: number,
];

/** The turn of all tokens that are new to this process: anybody can make up any number of them. */
const newTokens = 'new tokens';

/** Maximum age of a known grant: after changes by hand that set no new version, whoever made them notices. */
const maxAgeMs = 10_000;

type WhoWrites = Pick<Caller, 'store' | 'identified'>;

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

export const grantSql = {
  findByToken: sql<GrantRow>`
    SELECT tokens.scopes, tokens.expires_at, tokens.revoked_at, tokens.family, ${userColumns}
    FROM plant_store.tokens
    JOIN plant_store.stores ON stores.store = tokens.store
    JOIN plant_store.users ON users.store = tokens.store AND users.id = tokens.user_id
    WHERE tokens.store = $1 AND stores.store = $1 AND users.store = $1 AND tokens.hash = $2`,
  findByUser: sql<GrantRow>`
    SELECT '', NULL, NULL, NULL, ${userColumns}
    FROM plant_store.stores JOIN plant_store.users ON users.store = stores.store
    WHERE stores.store = $1 AND users.store = $1 AND users.name = $2`,
  reviveUser: sql`
    UPDATE plant_store.users
    SET removed_at = NULL,
        role = coalesce($3::text, CASE WHEN removed_at IS NULL THEN role ELSE 'member' END)
    WHERE store = $1 AND id = $2 AND ($4::bigint IS NULL OR removed_at < $4)`,
  changeGrantsVersion: sql`UPDATE plant_store.stores SET grants = $2 WHERE store = $1`,
};

function grantOfRow(
  credential: Pick<Credential, 'tokenHash' | 'claims'>,
  store: number,
  [scopes, expiresAt, revokedAt, line, ...userAndVersion]: GrantRow,
): Grant {
  const [user, storeName, userName, role, removedAt, received, version] = userAndVersion;
  const row = [store, user, storeName, userName, role, removedAt] as const;
  return grantOf(credential, row, [scopes, expiresAt, revokedAt, line], received, version);
}

/**
 * Identifies a caller again, in the transaction of a write that has locked the row of the store. Returns no statement
 * for an operator, who has no token.
 */
export function identifyAgain(caller: WhoWrites | undefined): BoundStatement[] {
  return caller === undefined ? [] : [findAgain(caller.store, caller.identified)];
}

/** Why the caller must not write, by the rows of `identifyAgain`. */
export function refusalOf(
  caller: WhoWrites | undefined,
  rows: readonly Row[] = [],
): Problem | undefined {
  if (caller === undefined) return undefined;
  const now = callerNow(caller.store, caller.identified, rows);
  return now instanceof Problem ? now : undefined;
}

/** The line of the caller's token, by the rows of `identifyAgain`. */
export function lineOf([found]: readonly Row[] = []): string | null {
  return (found as GrantRow | undefined)?.[3] ?? null; // only tokens of the service create others
}

export function findAgain(store: number, [, tokenHash, , , claims]: Identified): BoundStatement {
  return claims === undefined
    ? [grantSql.findByToken, [store, Buffer.from(tokenHash, 'latin1')]]
    : [grantSql.findByUser, [store, claims.userName]];
}

/** The caller by the rows of `findAgain`, or `invalid-token` if the token was revoked. */
export function callerNow(
  store: number,
  [, hash, , , claims]: Identified,
  [found]: readonly Row[],
): Caller | Problem {
  if (found === undefined) return unrevokedCaller(undefined);
  const credential = { tokenHash: Buffer.from(hash, 'latin1'), claims };
  return unrevokedCaller(grantOfRow(credential, store, found as GrantRow)); // a row of `findAgain`
}

/** Only with a change, because it makes every cached grant of the store outdated. */
export function changeGrantsVersion(store: number): BoundStatement {
  return [grantSql.changeGrantsVersion, [store, newGrantsVersion()]];
}

/**
 * Turns a removed user into a new one, who inherits no plants, shares or tokens. Sets the role of any user, if one is
 * given. With `beforeMs`, changes only a user who was removed before that time.
 */
export function reviveUser(
  { store, user }: Identity,
  role?: Role,
  beforeMs?: number,
): BoundStatement {
  return [grantSql.reviveUser, [store, user, role, beforeMs]];
}

/** The part of the storage of identities that requests need most. */
export class Grants {
  protected readonly cluster: Cluster;
  protected readonly names: Names;
  readonly #versions: GrantsVersions;

  constructor(cluster: Cluster, versions: GrantsVersions, names: Names) {
    this.cluster = cluster;
    this.#versions = versions;
    this.names = names;
  }

  /** Limits the time of all statements together, including queries that others have started. */
  async identify(
    credential: Credential,
    known?: Grant,
    onWait?: () => void,
  ): Promise<Grant | undefined> {
    try {
      return await withTimeout(this.#identify(credential, known, onWait));
    } catch (error) {
      throw problemOf(error);
    }
  }

  async #identify(
    credential: Credential,
    known?: Grant,
    onWait?: () => void,
  ): Promise<Grant | undefined> {
    if (known !== undefined && performance.now() < known.readAtMs + maxAgeMs) {
      const current = this.#versions.current(known.caller.store);
      onWait?.();
      if ((await current) === known.caller.identified[0]) return known;
    }
    return credential.claims === undefined
      ? this.#findToken(credential, known === undefined ? newTokens : userKey(known.caller))
      : this.#findUser(credential);
  }

  async #findToken(
    { tokenHash, store }: TokenCredential,
    turn: string,
  ): Promise<Grant | undefined> {
    const values = [store, Buffer.from(tokenHash)];
    const [row] = await this.cluster.read(store, grantSql.findByToken, values, turn);
    return row && grantOfRow({ tokenHash }, store, row);
  }

  async #findUser(credential: JwtCredential): Promise<Grant | undefined> {
    const { storeName, userName } = credential.claims;
    const known = await this.names.findStore(storeName);
    const found = known === undefined ? undefined : await this.#findUserIn(known, credential);
    if (found !== undefined) return found;
    const { store } = await this.names.findOrCreateUser(storeName, userName, 'member');
    return this.#findUserIn(store, credential);
  }

  /** Recreates a user who was removed before the JWT was issued. */
  async #findUserIn(store: number, credential: JwtCredential): Promise<Grant | undefined> {
    const { claims } = credential;
    const values = [store, claims.userName];
    const [row] = await this.cluster.read(store, grantSql.findByUser, values);
    if (row?.[5] !== claims.storeName) return undefined;
    const { 4: user, 8: removedAtMs } = row;
    if (removedAtMs === null || removedAtMs >= claims.issuedAtMs)
      return grantOfRow(credential, store, row);
    const server = await this.cluster.ofStore(store);
    // The user may have been removed again since.
    const revive = reviveUser({ store, user }, undefined, claims.issuedAtMs);
    await server.transact(changeGrantsVersion(store), revive);
    return this.#findUserIn(store, credential);
  }
}
