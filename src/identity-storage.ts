import type { Credential, Grant, Role, Scope } from './access.ts';

/** The users of a storage (storage.ts), and the tokens that they are identified by. */
export interface IdentityStorage {
  /** Credentials that can be looked up at a time without delaying other requests. */
  readonly lookupsMax: number;

  /**
   * What this credential stands for, also when it has ended; undefined where it stands for nobody. The
   * only source of a caller: what is read for a caller shows all that was acknowledged before this was
   * called.
   */
  identify(credential: Credential): Promise<Grant | undefined>;

  /** Adds a token, and with it its store and its user where they are new. */
  createToken(token: NewToken): Promise<void>;

  /** Tokens in ascending order of id, of one store or of all. */
  listTokens(query: TokenQuery): Promise<TokenRecord[]>;

  /**
   * Ends a token: every process refuses it from the next request on (`Freshness.refresh`). Resolves to the
   * token as it is now, or to undefined if there is none. One that was revoked before keeps its time.
   */
  revokeToken(id: string, revokedAtMs: number): Promise<TokenRecord | undefined>;
}

/** Times are milliseconds since the Unix epoch. */
export interface NewToken {
  hash: Uint8Array;
  store: string;
  user: string;
  /** The user's role in the store from now on; undefined leaves it, and is `member` for a new user. */
  role?: Role | undefined;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs?: number | undefined;
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
