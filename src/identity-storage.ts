import type { Credential, Grant, Identity, Role, Scope } from './access.ts';
import type { OwnToken } from './own-tokens.ts';

/** The users of a storage (storage.ts), and the tokens that identify them. */
export interface IdentityStorage {
  /** Maximum number of credentials to look up at a time: more would delay other requests. */
  readonly maxLookups: number;

  /**
   * The grant of this credential, even if it has expired or was revoked; undefined if there is none. It is
   * the only source of a caller: reads for this caller see every change acknowledged before the call.
   */
  identify(credential: Credential): Promise<Grant | undefined>;

  /** The number of the store, and the role of the user in it. */
  findNames(name: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames>;

  /** Creates a token, and its store and user if needed. A removed user becomes a new one (user-storage.ts). */
  createToken(token: NewToken): Promise<void>;

  /**
   * Creates another token for the user of the grant. Resolves to false, without a change, if the grant's token is not
   * active any more: both are checked and written in one transaction, so a revoked token leaves none behind.
   *
   * Deletes ended tokens of the user (own-tokens.ts). Rejects with `too-many-tokens`.
   */
  createOwnToken(by: Grant, token: OwnToken): Promise<boolean>;

  /** Tokens of one store or of all, in ascending order of id. */
  listTokens(query: TokenQuery): Promise<TokenRecord[]>;

  /**
   * Revokes a token: every process refuses it from the next request on (`Freshness.refresh`). Resolves to the
   * revoked token, or to undefined if there is none. A second call does not change `revokedAtMs`. If `owner` is given,
   * only a token of this user is revoked.
   */
  revokeToken(id: string, revokedAtMs: number, owner?: Identity): Promise<TokenRecord | undefined>;

  /** Stores when tokens were last used. No cached grant becomes stale. A later time is never replaced. */
  recordUses(uses: readonly TokenUse[]): Promise<void>;
}

/** Times are in milliseconds since the Unix epoch. */
export interface NewToken {
  hash: Uint8Array;
  store: string;
  user: string;
  /** Sets the user's role in the store. If undefined, it does not change; a new user is a `member`. */
  role?: Role | undefined;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs?: number | undefined;
}

export interface FoundNames {
  /** Undefined if there is no such store. */
  store: number | undefined;
  /** The role of the user; undefined if there is no such user. */
  role: Role | undefined;
}

export interface TokenQuery {
  store?: string | undefined;
  /** Only tokens of this user of `store`. */
  user?: string | undefined;
  /** Only ids above this one. */
  after?: string | undefined;
  limit: number;
}

export interface TokenRecord {
  id: string;
  store: string;
  user: string;
  role: Role;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs: number | undefined;
  revokedAtMs: number | undefined;
  /** To the minute; undefined if it was never used. */
  lastUsedAtMs: number | undefined;
}

export interface TokenUse {
  hash: Uint8Array;
  store: number;
  usedAtMs: number;
}
