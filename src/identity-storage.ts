import type { Credential, Grant, Role, Scope } from './access.ts';

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

  /** Creates a token, and its store and user if needed. */
  createToken(token: NewToken): Promise<void>;

  /** Tokens of one store or of all, in ascending order of id. */
  listTokens(query: TokenQuery): Promise<TokenRecord[]>;

  /**
   * Revokes a token: every process refuses it from the next request on (`Freshness.refresh`). Resolves to the
   * revoked token, or to undefined if there is none. A second call does not change `revokedAtMs`.
   */
  revokeToken(id: string, revokedAtMs: number): Promise<TokenRecord | undefined>;
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
}
