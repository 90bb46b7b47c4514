import type { Caller, Identified, Identity, Role } from './access.ts';
import type { StoredPlant } from '../plants/plant-storage.ts';
import { fixedProblem } from '../problem.ts';

/**
 * The users and stores of a storage (storage.ts), for its operators and for managers, who are the `author` of what they change.
 * `setRole` and `beginRemoval` reject with `last-manager` if the store would have none left, and with `manager-required` if the
 * author is none any more.
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
   * Sets the role of a user. Resolves to whether there is one with this name.
   */
  setRole(by: Caller, user: string, role: Role, request?: string): Promise<boolean>;

  /** The first step of a removal by a manager: decides whether they can, and makes the user a member. */
  beginRemoval(user: Identity, author: Author): Promise<void>;

  /**
   * Revokes all tokens of the user except that of the author, removes their webhooks, ends the shares that they give, and about `limit` shares that they receive.
   * Resolves to the number of ended shares: repeat it until there are none.
   */
  endAccess(user: Identity, revokedAtMs: number, limit: number, author?: Author): Promise<number>;

  /**
   * Moves up to `limit` plants to another owner of the store. Resolves to how many: repeat it until none is left. Moves
   * none to a user who was removed. With `only`, it moves this plant, unless it has changed since, or the new owner was
   * removed after the position `since`.
   */
  movePlants(
    from: Identity,
    to: number,
    limit: number,
    author?: Author,
    only?: StoredPlant & { since: number },
  ): Promise<number>;

  /**
   * Takes a step of blanking what the database has of a removed user with this name, in up to `limit` changes from a position
   * on, and ends shares with the name. The last step blanks the name itself. Resolves to where to continue, or to undefined,
   * without a change, if the user has access or owns something.
   */
  forget(
    user: Identity,
    name: string,
    from: number,
    limit: number,
  ): Promise<{ next?: number } | undefined>;

  /**
   * Removes a user, and revokes tokens and removes webhooks that were created for them since `endAccess`. Resolves to false, without
   * a change, if they still own plants or give shares.
   */
  remove(user: Identity, removedAtMs: number, author?: Author): Promise<boolean>;
}

export const lastManager = fixedProblem(
  'last-manager',
  'This user is the last manager of the store. Make another user a manager first.',
);

export const managerRequired = fixedProblem(
  'manager-required',
  'Only managers of the store can do this. Ask one of them, or the operator of this service.',
);

/** Who writes. A write of an operator has no author. */
export interface Author {
  /** Identified again before the decision, which a revoked token does not reach. */
  readonly by?: Identified | undefined;
  readonly request?: string | undefined;
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
  id: number;
  /** Number of tokens that have neither expired nor been revoked. */
  activeTokens: number;
  /** When one of the tokens was last used, to the minute. */
  lastUsedAtMs: number | undefined;
  /** The ids of invitations that can still create tokens, in any order. Undefined if there are none. */
  invitations: string[] | undefined;
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
