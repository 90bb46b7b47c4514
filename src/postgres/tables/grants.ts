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
  type JwtCredential,
  type TokenCredential,
  type ReceivedShare,
  type Role,
} from '../../access/access.ts';
import { grantOf, unrevokedCaller, type TokenTerms } from '../../access/identity-rows.ts';
import { sql, type Row, type Query } from '../../sql/statement.ts';
import { problemOf } from '../errors.ts';
import { GrantsVersions } from './grants-version.ts';
import type { Engine } from '../../sql/write.ts';
import type { Servers } from '../servers.ts';
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

/** Identifies a caller again, in the transaction of a write that has locked the row of the store. */
export function findAgain(store: number, [, tokenHash, , , claims]: Identified): Query {
  return claims === undefined
    ? [grantSql.findByToken, [store, Buffer.from(tokenHash, 'latin1')]]
    : [grantSql.findByUser, [store, claims.userName]];
}

/** The caller by the rows of `findAgain`. Throws `invalid-token` if the token was revoked. */
export function callerNow(
  store: number,
  [, hash, , , claims]: Identified,
  [found]: readonly Row[],
): Caller {
  if (found === undefined) return unrevokedCaller(undefined);
  const credential = { tokenHash: Buffer.from(hash, 'latin1'), claims };
  return unrevokedCaller(grantOfRow(credential, store, found as GrantRow)); // a row of `findAgain`
}

/** The part of the storage of identities that requests need most. */
export class Grants {
  readonly #servers: Servers;
  readonly #engine: Engine;
  readonly #versions: GrantsVersions;

  constructor(servers: Servers, engine: Engine) {
    this.#servers = servers;
    this.#engine = engine;
    this.#versions = new GrantsVersions(servers);
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
    const [row] = await this.#servers.read(store, grantSql.findByToken, values, turn);
    return row && grantOfRow({ tokenHash }, store, row);
  }

  /** Creates the user unless they exist, or were removed after the JWT was issued. */
  async #findUser(credential: JwtCredential): Promise<Grant | undefined> {
    const { storeName, userName, issuedAtMs } = credential.claims;
    const known = await this.#engine.findStore(storeName);
    const found = known === undefined ? undefined : await this.#findUserIn(known, credential);
    if (found !== undefined && !isOlder(found, issuedAtMs)) return found;
    const store = await this.#engine.ensureStore(storeName);
    await this.#engine.write('addUser', store, userName, issuedAtMs);
    return this.#findUserIn(store, credential);
  }

  async #findUserIn(store: number, credential: JwtCredential): Promise<Grant | undefined> {
    const values = [store, credential.claims.userName];
    const [row] = await this.#servers.read(store, grantSql.findByUser, values);
    return row && grantOfRow(credential, store, row);
  }
}

function isOlder({ revokedAtMs = Infinity }: Grant, issuedAtMs: number): boolean {
  return revokedAtMs < issuedAtMs;
}
