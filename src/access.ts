/**
 * Who is calling, and what they may read and write.
 *
 * A user belongs to one store and never leaves it. What a user reaches follows from their role: a member
 * the plants that they own, a manager every plant of the store. A token narrows that further to its scopes.
 */

export const roles = ['member', 'manager'] as const;
export type Role = (typeof roles)[number];

export const scopes = ['plants:read', 'plants:write'] as const;
export type Scope = (typeof scopes)[number];

/** Scopes as storages keep them. */
export function textOfScopes(granted: readonly Scope[]): string {
  return granted.join(' ');
}

export function scopesOf(text: string): Scope[] {
  return text.split(' ') as Scope[]; // written by textOfScopes alone
}

/** A user of a store. Both are numbers that the storage gave out; they mean nothing outside it. */
export interface Identity {
  readonly store: number;
  readonly user: number;
}

/**
 * Whose plants of a store: everybody's, or those of these owners, in ascending order and none twice.
 *
 * Each storage applies it: when it chooses the index of a list (lists.ts, plants.ts), after it has found a
 * plant (`findPlant`), in the statement that deletes one (sqlite/plants.ts, postgres/change-statements.ts), and in
 * the key of cached pages (`firstPageKey`).
 */
export type Reach = 'all' | readonly number[];

/** Who is calling, and what they may do: what `identify` of a storage has found, and nothing else. */
export interface Caller extends Identity {
  readonly scopes: ReadonlySet<Scope>;
  /** The plants that they may list and get. */
  readonly read: Reach;
  /** The plants that they may delete. Those that they create are their own. */
  readonly write: Reach;
}

/** What reads of plants need of a caller, and what changes of plants do. */
export type ReadAccess = Pick<Caller, 'store' | 'read'>;
export type WriteAccess = Pick<Caller, 'store' | 'write'>;

/**
 * What a request is identified by: the SHA-256 of its token (token.ts). Another kind of credential is added
 * here, in `credentialOf` of http/auth.ts, which reads it, and in `identify` of each storage. That has to find or
 * create its user.
 */
export interface Credential {
  readonly tokenHash: Uint8Array;
}

/** What a credential stands for, and until when. Times are milliseconds since the Unix epoch. */
export interface Grant {
  readonly caller: Caller;
  readonly expiresAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
}

export type GrantState = 'active' | 'expired' | 'revoked';

/** A grant ends at `expiresAtMs` itself: that millisecond is already outside. */
export function stateOf(
  grant: Pick<Grant, 'expiresAtMs' | 'revokedAtMs'>,
  nowMs: number,
): GrantState {
  if (grant.revokedAtMs !== undefined) return 'revoked';
  return grant.expiresAtMs !== undefined && grant.expiresAtMs <= nowMs ? 'expired' : 'active';
}

/**
 * The only place that decides what a user reaches. Grants are cached: whatever else this depends on must
 * change what shows that they are old (decision 12: `grant_changes` on SQLite, `grants` on PostgreSQL).
 */
export function callerOf({ store, user }: Identity, role: Role, granted: readonly Scope[]): Caller {
  const reach = role === 'manager' ? 'all' : [user];
  return { store, user, scopes: new Set(granted), read: reach, write: reach };
}

export function reaches(reach: Reach, owner: number): boolean {
  return reach === 'all' || reach.includes(owner);
}

/** Most reach the plants of one owner: their own. */
export function soleOwner(reach: Reach): number | undefined {
  return reach !== 'all' && reach.length === 1 ? reach[0] : undefined;
}
