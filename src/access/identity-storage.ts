import type { Credential, Grant, Role, Scope } from './access.ts';
import type { OwnToken } from './own-tokens.ts';

/** The users of a storage (storage.ts), and the tokens that identify them. `request` is the id of a request, for the log. */
export interface IdentityStorage {
  /**
   * The grant of this credential, even if it has expired or was revoked; undefined if there is none. It is
   * the only source of a caller: reads for this caller see every change acknowledged before the call.
   *
   * `known` is the grant of an earlier call, and the result if it is current. If checking it takes a wait, `onWait` is
   * called meanwhile. What is then read for the known grant is as new as what is read afterwards, but can be used only
   * if that grant is the result.
   */
  identify(credential: Credential, known?: Grant, onWait?: () => void): Promise<Grant | undefined>;

  /**
   * Creates a token, and its store and user if needed. A removed user becomes a new one (user-storage.ts). The storage
   * makes the text of the token, because that names the number of the store.
   */
  createToken(token: NewToken): Promise<CreatedToken>;

  /**
   * Creates another token for the user of the grant or, if it names one, for another user of the store, who is created if
   * needed. The hash is that of a token that names the store of the grant. An invitation loses a use.
   *
   * Resolves to the token of an earlier request with this key, by its salt. Deletes ended tokens of the user (own-tokens.ts).
   * Rejects with `too-many-tokens`, `invitation-used`, and `idempotency-key-reused` if the earlier request had other terms or
   * its token has ended.
   */
  createOwnToken(
    by: Grant,
    token: OwnToken,
    request?: string,
    user?: string,
  ): Promise<(StoredToken & Pick<OwnToken, 'salt'>) | undefined>;

  /** Tokens of a store, or of one of its users, in ascending order of their ids. */
  listTokens(query: TokenQuery): Promise<TokenRecord[]>;

  /**
   * Revokes a token, which every process refuses from the next request on (tables/grants.ts of each engine). Resolves
   * to the revoked token, whose `revokedAtMs` a second call does not change, or to undefined if there is none. With
   * `by`, revokes only a token of the same user that `by` can revoke (`assertCanRevoke` in own-tokens.ts) or, if `by` is of a
   * manager with `users:write`, of any user of the store.
   */
  revokeToken(
    id: string,
    revokedAtMs: number,
    by?: Grant,
    request?: string,
  ): Promise<TokenRecord | undefined>;

  /** Stores when tokens of a store were last used. No cached grant becomes stale. A later time is never replaced. */
  recordUses(store: number, usedAtMs: number, hashes: readonly Uint8Array[]): Promise<void>;
}

/** Times are in milliseconds since the Unix epoch. */
export interface NewToken {
  store: string;
  user: string;
  /** Sets the user's role in the store. If undefined, it does not change; a new user is a `member`. */
  role?: Role | undefined;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs?: number | undefined;
}

export interface CreatedToken {
  /** The text of the token. Nothing stores it. */
  token: string;
  id: string;
}

export interface TokenQuery {
  store: number;
  /** Only tokens of this user. */
  user?: number | undefined;
  /** Only tokens after the one with this id, which need not exist any more. */
  after?: string | undefined;
  limit: number;
}

export interface StoredToken extends Omit<OwnToken, 'hash' | 'salt'> {
  revokedAtMs: number | undefined;
  /** To the minute; undefined if it was never used. */
  lastUsedAtMs: number | undefined;
}

export interface TokenRecord extends StoredToken {
  id: string;
  store: string;
  user: string;
  role: Role;
}
