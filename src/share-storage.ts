import type { ShareAccess } from './access.ts';

/** Maximum number of users with whom one owner can share. */
export const maxGivenShares = 1_000;

/** What a user of a store lets another one do with all of their plants. Both are names. */
export interface Share {
  owner: string;
  user: string;
  access: ShareAccess;
}

/** The shares of a user, in ascending order of the other user's name. */
export interface SharesOfUser {
  given: Share[];
  /** Those in effect: the oldest ones, up to `maxOwnersInReach - 1`. */
  received: Share[];
}

/**
 * The shares of a storage (storage.ts). Every process applies a change from the next request on.
 *
 * A share names the user who receives it, who need not exist: it takes effect once a user has that name. So nobody
 * can find out by sharing which users exist.
 */
export interface ShareStorage {
  /**
   * Adds a share, or sets the access of an existing one. Resolves to whether it is new. `sinceMs` is the time of the
   * addition, since the Unix epoch.
   *
   * Rejects with `invalid-token` if the owner was removed: a later user of that name must not share anything. Rejects
   * with `too-many-shares` if the owner shares with `maxGivenShares` others.
   */
  share(store: number, share: Share, sinceMs: number): Promise<boolean>;

  /** Ends shares, all of them in one transaction. Resolves to whether there was any. */
  unshare(store: number, ends: readonly ShareEnds[]): Promise<boolean>;

  sharesOf(store: number, user: string): Promise<SharesOfUser>;

  /** Shares of a store in the order in which its owners were created, then by user, after the one given. */
  listShares(store: number, after: ShareEnds | undefined, limit: number): Promise<Share[]>;
}

/** The names at both ends of a share, which identify it. */
export type ShareEnds = Pick<Share, 'owner' | 'user'>;
