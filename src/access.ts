/**
 * Who is calling, and what they may read and write.
 *
 * A user belongs to one store and never leaves it. A member reaches the plants they own; a manager
 * reaches every plant of the store. A token narrows that further to its scopes.
 */

export const roles = ['member', 'manager'] as const;
export type Role = (typeof roles)[number];

export const scopes = ['plants:read', 'plants:write'] as const;
export type Scope = (typeof scopes)[number];

/** `store` and `user` are numbers that the storage gave out; they mean nothing outside it. */
export interface Identity {
  readonly store: number;
  readonly user: number;
  readonly role: Role;
}

/** Who is calling, with what their token is good for. */
export interface Caller extends Identity {
  readonly scopes: ReadonlySet<Scope>;
}

/** What a token stands for, and until when. Times are milliseconds since the Unix epoch. */
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

/** True where the caller reaches every plant of the store, false where only their own. */
export function reachesWholeStore(caller: Identity): boolean {
  return caller.role === 'manager';
}
