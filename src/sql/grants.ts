/**
 * Who is calling, on both engines: what a token or a JWT grants. Each engine caches grants in its own way.
 */
import {
  callerOf,
  parseScopes,
  userKey,
  type Caller,
  type Credential,
  type Grant,
  type Identified,
  type JwtCredential,
  type ReceivedShare,
  type Role,
} from '../access/access.ts';
import { familyOf } from '../access/own-tokens.ts';
import { tokenId } from '../access/token.ts';
import { tokenEnded } from '../problem.ts';
import { receivedShares } from './shares.ts';
import { sql, type Query, type Row } from './statement.ts';
import type { Engine } from './write.ts';

/** The version of the grants of a store, a user, the shares that they receive as JSON, and the terms of a token. */
type GrantRow = readonly [
  version: number,
  user: number,
  storeName: string,
  userName: string,
  role: Role | null,
  removedAt: number | null,
  received: string | null,
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
  line: string | null,
  renewableUntil: number | null,
  uses: number | null,
];

const userColumns = `
  stores.grants, users.id, stores.name, users.name, users.role, users.removed_at, (
    SELECT '[' || string_agg('[' || owner || ',"' || access || '"]', ',') || ']'
    FROM (${receivedShares('users.name', 'users.id')}) AS received
  )`;

export const grantSql = {
  findByToken: sql<GrantRow>`
    SELECT ${userColumns}, tokens.scopes, tokens.expires_at, tokens.revoked_at, tokens.family,
      tokens.renewable_until, tokens.uses
    FROM plant_store.tokens
    JOIN plant_store.stores ON stores.store = tokens.store
    JOIN plant_store.users ON users.store = tokens.store AND users.id = tokens.user_id
    WHERE tokens.store = $1 AND stores.store = $1 AND users.store = $1 AND tokens.hash = $2`,
  // A JWT has claims instead of these terms.
  findByUser: sql<GrantRow>`
    SELECT ${userColumns}, '', NULL, NULL, NULL, NULL, NULL
    FROM plant_store.stores JOIN plant_store.users ON users.store = stores.store
    WHERE stores.store = $1 AND users.store = $1 AND users.name = $2`,
};

type Identifier = Pick<Credential, 'tokenHash' | 'claims'>;

/** Finds what the credential grants in a store. */
export function findGrant(store: number, { tokenHash, claims }: Identifier): Query<GrantRow> {
  return claims === undefined
    ? [grantSql.findByToken, [store, tokenHash]]
    : [grantSql.findByUser, [store, claims.userName]];
}

/** The grant by the rows of `findGrant`. */
export function grantOf(
  store: number,
  { tokenHash, claims }: Identifier,
  [row]: readonly GrantRow[],
): Grant | undefined {
  if (row === undefined) return undefined;
  const [version, user, storeName, userName, storedRole, removedAt, received, ...terms] = row;
  const [scopeList, expiresAt, revokedAt, line, renewableUntil, uses] = terms;
  const granted = claims?.scopes ?? parseScopes(scopeList);
  const role = claims?.role ?? storedRole ?? 'member';
  const isRemoved = storedRole === null || (removedAt ?? 0) >= (claims?.issuedAtMs ?? Infinity);
  const id = tokenId(tokenHash, claims === undefined ? store : undefined);
  const identified = [version, hashKey(tokenHash), user, claims] as const;
  const shares: ReceivedShare[] = JSON.parse(received ?? '[]');
  return {
    caller: callerOf({ store, user, identified }, role, uses === null ? granted : [], shares),
    readAtMs: performance.now(),
    tokenId: id,
    tokenHash,
    isStored: claims === undefined,
    family: claims === undefined ? familyOf(line, id) : userKey({ store, user }),
    storeName,
    userName,
    role,
    expiresAtMs: claims?.expiresAtMs ?? expiresAt ?? undefined,
    revokedAtMs: revokedAt ?? (isRemoved ? (removedAt ?? 0) : undefined),
    renewableUntilMs:
      claims?.expiresAtMs ?? renewableUntil ?? (uses === null ? expiresAt : null) ?? undefined,
    invitation: uses === null ? undefined : { uses, scopes: granted },
  };
}

/** A hash as latin1 text, which is a key of a Map and of `Identified`. */
function hashKey({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
}

/** Identifies a caller again, in the transaction of a write. */
export function findAgain(store: number, by: Identified): Query {
  return findGrant(store, identifierOf(by));
}

/** The caller by the rows of `findAgain`. Throws `invalid-token` if the token was revoked, which can also have deleted it. */
export function callerNow(store: number, by: Identified, rows: readonly Row[]): Caller {
  const grant = grantOf(store, identifierOf(by), rows as GrantRow[]); // those of `findAgain`
  if (grant === undefined || grant.revokedAtMs !== undefined) throw tokenEnded('revoked');
  return grant.caller;
}

function identifierOf([, tokenHash, , claims]: Identified): Identifier {
  return { tokenHash: Buffer.from(tokenHash, 'latin1'), claims };
}

/** The grant of a JWT. Creates its user unless they exist, or were removed after it was issued. */
export async function findUserGrant(
  engine: Engine,
  credential: JwtCredential,
): Promise<Grant | undefined> {
  const { storeName, userName, issuedAtMs } = credential.claims;
  const find = async (store: number) =>
    grantOf(store, credential, await engine.read(store, ...findGrant(store, credential)));
  const known = await engine.findStore(storeName);
  const found = known === undefined ? undefined : await find(known);
  if (found !== undefined && (found.revokedAtMs ?? Infinity) >= issuedAtMs) return found;
  const store = await engine.ensureStore(storeName);
  await engine.write('addUser', store, userName, issuedAtMs);
  return find(store);
}
