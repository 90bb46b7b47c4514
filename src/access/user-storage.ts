import type { Identity, Role } from './access.ts';

/**
 * The users and stores of a storage (storage.ts), for its operators.
 *
 * A removed user keeps their row, so that a write in progress never refers to a user who does not exist. No method
 * returns removed users, except `find`. A new token for the name makes them a new user, who is a member.
 */
export interface UserStorage {
  /** Stores in ascending order of name. */
  listStores(query: NameQuery): Promise<StoreRecord[]>;

  /** Users of a store in ascending order of name; none if there is no such store. */
  list(store: string, query: NameQuery): Promise<UserRecord[]>;

  /** A store, and the user with this name in it. */
  find(store: string, user?: string): Promise<FoundNames>;

  /** The names of users of a store, by number, even of those who were removed. */
  namesOf(store: number, users: readonly number[]): Promise<ReadonlyMap<number, string>>;

  /**
   * Revokes all tokens of the user, removes their webhooks, ends the shares that they give, and about `limit` shares that they receive.
   * Resolves to the number of ended shares: repeat it until there are none.
   */
  endAccess(user: Identity, revokedAtMs: number, limit: number): Promise<number>;

  /**
   * Moves up to `limit` plants to another owner of the store. Resolves to how many: repeat it until none is left. Moves
   * none to a user who was removed.
   */
  movePlants(from: Identity, to: number, limit: number): Promise<number>;

  /**
   * Removes a user, and revokes tokens and removes webhooks that were created for them since `endAccess`. Resolves to false, without
   * a change, if they still own plants or give shares.
   */
  remove(user: Identity, removedAtMs: number): Promise<boolean>;
}

export interface NameQuery {
  /** Only names above this one, in the order of their code points. */
  after?: string | undefined;
  limit: number;
}

export interface StoreRecord {
  store: string;
  /** Number of users. */
  users: number;
  /** The largest id that the store has ever held. */
  lastId: number;
}

export interface UserRecord {
  store: string;
  user: string;
  role: Role;
  /** Number of tokens that have neither expired nor been revoked. */
  activeTokens: number;
}

export interface FoundNames {
  /** Its number. Undefined if there is no such store. */
  store: number | undefined;
  /** Undefined if there never was a user with this name. */
  user: FoundUser | undefined;
}

export interface FoundUser extends Identity {
  /** Undefined if the user was removed. */
  role: Role | undefined;
}
