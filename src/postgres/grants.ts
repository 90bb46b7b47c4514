/**
 * What the sender of a request may do, in PostgreSQL: read in full only if no current grant is cached.
 */
import { randomInt } from 'node:crypto';
import {
  callerOf,
  familyOfUser,
  maxOwnersInReach,
  parseScopes,
  type Claims,
  type Credential,
  type Grant,
  type Identity,
  type ReceivedShare,
  type Role,
  type Scope,
} from '../access.ts';
import { outcomeUnknown } from '../problem.ts';
import { tokenId } from '../token.ts';
import { prepared } from './connection.ts';
import type { Freshness } from './freshness.ts';
import type { Names } from './names.ts';
import type { BoundStatement, Pool } from './pool.ts';

type TokenRow = readonly [
  store: number,
  user: number,
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
  family: string | null,
];

export const grantSql = {
  findToken: prepared<TokenRow>(
    'find_token',
    `
      SELECT store, user_id, scopes, expires_at, revoked_at, family
      FROM plant_store.tokens WHERE hash = $1`,
  ),
  receivedShares: prepared<ReceivedShare>(
    'shares_in_effect',
    `
      SELECT received.owner, received.access
      FROM plant_store.users CROSS JOIN LATERAL (
        SELECT owner, access FROM plant_store.shares
        WHERE store = $1 AND user_name = users.name
        ORDER BY since, owner LIMIT ${maxOwnersInReach - 1}
      ) AS received
      WHERE users.store = $1 AND users.id = $2`,
  ),
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

function termsOf({ scopes, role, expiresAtMs }: Claims, user: Identity): Terms {
  return {
    isStored: false,
    family: familyOfUser(user),
    scopes,
    role,
    expiresAtMs,
    revokedAtMs: undefined,
  };
}

/** How the user of a JWT comes back who was removed before it was issued. */
function reviveUserOfClaims({ store, user }: Identity, { issuedAtMs }: Claims): BoundStatement {
  return [grantSql.reviveUserOfClaims, [store, user, issuedAtMs]];
}

export function changeGrantsVersion(store: number): BoundStatement {
  return [grantSql.changeGrantsVersion, [store, randomInt(2 ** 48 - 1)]]; // its largest range
}

/** If this user was removed, makes a new user of them, who has nothing of the former one. */
export function reviveUser({ store, user }: Identity, role: Role): BoundStatement {
  return [grantSql.reviveUser, [store, user, role]];
}

export class Grants {
  readonly #pool: Pool;
  readonly #freshness: Freshness;
  readonly #names: Names;

  constructor(pool: Pool, freshness: Freshness, names: Names) {
    this.#pool = pool;
    this.#freshness = freshness;
    this.#names = names;
  }

  async identify({ tokenHash, claims }: Credential): Promise<Grant | undefined> {
    const bytes = Buffer.from(tokenHash);
    const key = bytes.toString('latin1');
    const cached = this.#freshness.getGrant(key);
    if (cached !== undefined) {
      const versions = await this.#freshness.refresh(cached.grant.caller.store);
      if (versions?.grants === cached.version) return cached.grant;
    }
    const found = await (claims === undefined
      ? this.#findUserOfToken(bytes)
      : this.#names.findOrCreateUser(claims.storeName, claims.userName, 'member'));
    if (found === undefined) return undefined;
    const { store, user } = found;
    // Read the token again after the versions, so that it is at least as new as they are.
    const versions = await this.#freshness.refresh(store);
    const [terms, described, received] = await Promise.all([
      claims === undefined ? this.#findTerms(bytes) : termsOf(claims, found),
      this.#names.describe(found),
      this.#pool.read(grantSql.receivedShares, [store, user]),
    ]);
    if (terms === undefined || described === undefined) return undefined;
    const { removedAtMs } = described;
    if (claims !== undefined && removedAtMs !== undefined && removedAtMs < claims.issuedAtMs) {
      await this.#pool.transact([changeGrantsVersion(store), reviveUserOfClaims(found, claims)]);
      return this.identify({ tokenHash, claims });
    }
    const { isStored, family, scopes, role = described.role, expiresAtMs } = terms;
    const revokedAtMs = terms.revokedAtMs ?? removedAtMs;
    const grant = {
      caller: callerOf({ store, user }, role, scopes, received),
      tokenId: tokenId(tokenHash),
      tokenHash,
      isStored,
      family,
      storeName: described.store,
      userName: described.user,
      role,
      expiresAtMs,
      revokedAtMs,
    };
    if (versions !== undefined) this.#freshness.setGrant(key, grant, versions.grants);
    return grant;
  }

  async #findUserOfToken(hash: Buffer): Promise<Identity | undefined> {
    const [row] = await this.#pool.read(grantSql.findToken, [hash]);
    return row && { store: row[0], user: row[1] };
  }

  async #findTerms(hash: Buffer): Promise<Terms | undefined> {
    const [row] = await this.#pool.read(grantSql.findToken, [hash]);
    if (row === undefined) return undefined;
    const [, , scopes, expiresAt, revokedAt, family] = row;
    return {
      isStored: true,
      family: family ?? tokenId(hash),
      scopes: parseScopes(scopes),
      role: undefined,
      expiresAtMs: expiresAt ?? undefined,
      revokedAtMs: revokedAt ?? undefined,
    };
  }

  /**
   * Changes grants and their version in one transaction. The version is first, because it locks the row of the store:
   * a token is never created from one that is being revoked (own-tokens.ts). On distributed engines, the new version
   * can become visible before the change. So once the change is visible, the version changes again.
   */
  async change(
    store: number,
    change: readonly BoundStatement[],
    isVisible: () => Promise<boolean>,
  ): Promise<void> {
    await this.#pool.transact([changeGrantsVersion(store), ...change]);
    try {
      if (!(await isVisible())) throw new Error('the transaction is not visible on all nodes yet');
      await this.#pool.write(...changeGrantsVersion(store));
    } catch (error) {
      throw outcomeUnknown(error);
    }
  }
}
