import { maxOwnersInReach, type Caller, type ShareAccess } from './access.ts';
import { Problem } from '../problem.ts';

/** Maximum number of users with whom one owner can share. */
export const maxGivenShares = 1_000;

/** What a user of a store lets another one, or `everyone`, do with all of their plants. Both are names. */
export interface Share {
  owner: string;
  user: string;
  access: ShareAccess;
}

/** A share in effect. If the owner shares with the user and with everyone, it has what both allow. */
export interface ShareInEffect extends Share {
  /** Whether the owner shares only with everyone. */
  isTeam: boolean;
}

/** Maximum number of other users in the shares of a user. */
export const maxOtherUsers = maxGivenShares + maxOwnersInReach;

/** All shares, unless one of these is given. */
export interface SharesQuery {
  /** Only shares with users whose names come after this one. */
  after?: string;
  /** Maximum number of other users. */
  limit?: number;
}

/** A page of the shares of a user, in ascending order of the other user's name. */
export interface SharesPage {
  /** Without those with everyone. */
  given: Share[];
  /** Those in effect: the oldest ones, up to `maxOwnersInReach - 1`. */
  received: ShareInEffect[];
  /** If more users follow, the name of the last one of this page. */
  next?: string;
}

/** The other user; then 0 for a share that is given, 1 for one that is received, and 2 for one that everyone receives. */
export type ShareRow = readonly [name: string, access: ShareAccess, kind: number];

/** `rows` are in order of their names, and have the given and the received share of `limit` + 1 names if more follow. */
export function sharesPageOf(user: string, rows: readonly ShareRow[], limit: number): SharesPage {
  const page: SharesPage = { given: [], received: [] };
  let [last, names] = ['', 0];
  for (const [name, access, kind] of rows) {
    if (name !== last) {
      if (names === limit) return { ...page, next: last };
      names++;
      last = name;
    }
    if (kind > 0) page.received.push({ owner: name, user, access, isTeam: kind === 2 });
    else page.given.push({ owner: user, user: name, access });
  }
  return page;
}

export const tooManyShares = () =>
  new Problem(
    'too-many-shares',
    `You share with the maximum of ${maxGivenShares} users. End a share first.`,
  );

/** A removed user cannot share: a later user of that name must not share anything. */
export const userRemoved = () =>
  new Problem('invalid-token', 'The user of this token was removed. Get a new token.');

/**
 * The shares of a storage (storage.ts). Every process applies a change from the next request on.
 *
 * A share names the user who receives it, who need not exist: it takes effect once a user has that name. So sharing
 * does not reveal which users exist. `request` is the id of a request, for the log.
 */
export interface ShareStorage {
  /**
   * Adds a share at `sinceMs` (since the Unix epoch), or sets the access of an existing one. Resolves to whether the
   * share is new. Without `by`, an operator shares for the owner.
   *
   * Rejects with `invalid-token` if the owner was removed: a later user of that name must not share anything. Rejects
   * with `too-many-shares` if the owner shares with `maxGivenShares` others.
   */
  set(
    store: number,
    share: Share,
    sinceMs: number,
    by?: Caller,
    request?: string,
  ): Promise<boolean>;

  /** Ends shares, all of them in one transaction. Resolves to whether there was any. */
  end(store: number, ends: readonly ShareEnds[], by?: Caller, request?: string): Promise<boolean>;

  of(store: number, user: string, query?: SharesQuery): Promise<SharesPage>;

  /** What an owner shares with this user, or with everyone. Undefined if nothing. */
  find(store: number, ends: ShareEnds): Promise<ShareAccess | undefined>;

  /** Shares of a store in the order in which its owners were created, then by user, after the one given. */
  list(store: number, after: ShareEnds | undefined, limit: number): Promise<Share[]>;
}

/** The names at both ends of a share, which identify it. */
export type ShareEnds = Pick<Share, 'owner' | 'user'>;
