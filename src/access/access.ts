/**
 * Who is calling, and what they can read and write.
 *
 * A user belongs to one store. Their role decides which plants they can access: a member their own, and those of
 * owners who share with them, a manager all of the store. The scopes of a token narrow this further.
 */

import { plantReadOnly } from '../problem.ts';

export const roles = ['member', 'manager'] as const;
export type Role = (typeof roles)[number];

export const scopes = [
  'plants:read',
  'plants:write',
  'shares:write',
  'webhooks:write',
  'users:write',
] as const;
export type Scope = (typeof scopes)[number];

/** What a token grants unless others are requested. */
export const defaultScopes: readonly Scope[] = ['plants:read', 'plants:write'];

/** What the page and an invitation need for a member. */
export const memberScopes: readonly Scope[] = [...defaultScopes, 'shares:write'];

/** What the first token of a database grants: it is that of a manager. */
export const firstScopes: readonly Scope[] = [...memberScopes, 'users:write'];

/** What a share allows with all plants of its owner: `write` includes `read`. */
export const shareAccesses = ['read', 'write'] as const;
export type ShareAccess = (typeof shareAccesses)[number];

/** In place of the name of the user who receives a share: everyone in the store, also who joins later. */
export const everyone = '';

/** Maximum number of owners in reach, including the user. The cost of a page grows with them. */
export const maxOwnersInReach = 1_000;

/** The form in which a storage stores scopes. */
export function formatScopes(granted: readonly Scope[]): string {
  return granted.join(' ');
}

export function parseScopes(text: string): Scope[] {
  return text.split(' ') as Scope[]; // only formatScopes writes it
}

/** A user of a store. The storage assigns both numbers; they mean nothing elsewhere. */
export interface Identity {
  readonly store: number;
  readonly user: number;
}

/** Which plants of a store a user can access: all, or those of these owners, in ascending order without duplicates. */
export type Reach = 'all' | readonly number[];

/** The plants that a change can meet: those that its token can see, and those that it can change. */
export type ChangeReach = readonly [read: Reach, write: Reach];

/** Who is calling, and what they can do. Only `identify` of a storage creates one. */
export interface Caller extends Identity {
  readonly identified: Identified;
  readonly scopes: ReadonlySet<Scope>;
  /** The plants that they can list and get. */
  readonly read: Reach;
  /** The plants that they can change. They own the plants that they create. */
  readonly write: Reach;
}

/** The part of a caller that is needed to read plants. */
export type ReadAccess = Pick<Caller, 'store' | 'user' | 'read' | 'write' | 'scopes'>;

/** The part of a caller that is needed to change plants. An operator is not identified. */
export type ChangeAccess = ReadAccess & { readonly identified?: Identified | undefined };

/** For commands of the operator, which are no user of the store. */
export function operatorOf(store: number, read: Reach): ReadAccess {
  return { store, user: 0, scopes: new Set(), read, write: [] };
}

/**
 * How a caller was identified: the version of the grants that were read, the hash of the token as latin1 text, and the
 * claims of a JWT. Every write compares the version in its transaction and, if it differs, identifies the caller again,
 * so that nothing is written for a revoked token. The log of changes has the user and the id of the token. A tuple,
 * because it is copied to the writer thread of SQLite.
 */
export type Identified = readonly [
  version: number,
  tokenHash: string,
  user: number,
  claims?: Claims | undefined,
];

/** What identifies the caller of a request: a token of the service, or a JWT. The hash is the SHA-256 of its text. */
export type Credential = TokenCredential | JwtCredential;

export interface TokenCredential {
  readonly tokenHash: Uint8Array;
  /** The number of the store that the token names. */
  readonly store: number;
  readonly claims?: undefined;
}

export interface JwtCredential {
  readonly tokenHash: Uint8Array;
  readonly store?: undefined;
  /** They are verified. The storage does not know the token, and creates the user if needed. */
  readonly claims: Claims;
}

/** What an identity provider says about a user (oidc/claims.ts). Times are in milliseconds since the Unix epoch. */
export interface Claims {
  readonly storeName: string;
  readonly userName: string;
  /** Undefined if the role that is stored for the user counts. */
  readonly role: Role | undefined;
  readonly scopes: readonly Scope[];
  /** The token was not issued before this time. The clock of the provider can be ahead. */
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

/** What a credential grants, and until when. Times are in milliseconds since the Unix epoch. */
export interface Grant {
  readonly caller: Caller;
  /** When it was read, on the clock of performance.now(). */
  readonly readAtMs: number;
  readonly tokenId: string;
  readonly tokenHash: Uint8Array;
  /** False for a JWT: the storage has its user, but not the token. */
  readonly isStored: boolean;
  /** What limits on requests count together: a token and all that were created with it, or all JWTs of a user. */
  readonly family: string;
  readonly storeName: string;
  readonly userName: string;
  readonly role: Role;
  readonly expiresAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
  /** The latest expiry of tokens that are created with this one. Undefined if they need not expire. */
  readonly renewableUntilMs: number | undefined;
  /** If the token is an invitation, which only creates tokens: how many, and their scopes. */
  readonly invitation: { readonly uses: number; readonly scopes: readonly Scope[] } | undefined;
}

/** A user as text: a key for what is counted or takes turns by user. */
export function userKey({ store, user }: Identity): string {
  return `${store} ${user}`; // unlike the id of a token, it has a space
}

export type GrantState = 'active' | 'expired' | 'revoked';

/** A grant is expired at `expiresAtMs` and later. */
export function stateOf(
  grant: Pick<Grant, 'expiresAtMs' | 'revokedAtMs'>,
  nowMs: number,
): GrantState {
  if (grant.revokedAtMs !== undefined) return 'revoked';
  return grant.expiresAtMs !== undefined && grant.expiresAtMs <= nowMs ? 'expired' : 'active';
}

/**
 * The only place that decides what a user can access. Both engines call it when they load a grant
 * (`grantOf`). `received` are the shares in effect, at most one for each other owner.
 *
 * Grants are cached: anything else that this depends on must also invalidate them (decision 12: `grant_changes`
 * on SQLite, `grants` on PostgreSQL).
 */
export function callerOf(
  identity: Pick<Caller, 'store' | 'user' | 'identified'>,
  role: Role,
  granted: readonly Scope[],
  received: readonly ReceivedShare[],
): Caller {
  const caller = { ...identity, scopes: new Set(granted) };
  if (role === 'manager') return { ...caller, read: 'all', write: 'all' };
  const ownersOf = (shares: readonly ReceivedShare[]) =>
    [caller.user, ...shares.map(([owner]) => owner)].toSorted((a, b) => a - b);
  const writable = received.filter(([, access]) => access === 'write');
  const read = ownersOf(received);
  // Usually the same array, which is sent to the writer thread once.
  return { ...caller, read, write: writable.length < received.length ? ownersOf(writable) : read };
}

/** Another user, who shares their plants with this one. */
export type ReceivedShare = readonly [owner: number, access: ShareAccess];

export function reaches(reach: Reach, owner: number): boolean {
  if (reach === 'all') return true;
  let low = 0;
  for (let high = reach.length; low < high;) {
    const middle = (low + high) >>> 1;
    if ((reach[middle] ?? owner) < owner) low = middle + 1;
    else high = middle;
  }
  return reach[low] === owner;
}

export function changeReachOf({ read, write, scopes: granted }: ReadAccess): ChangeReach {
  return [granted.has('plants:read') ? read : [], write];
}

/** Whether the plants of an owner can be changed. Throws `plant-read-only` if they can only be seen. */
export function canChange([read, write]: ChangeReach, owner: number): boolean {
  if (reaches(write, owner)) return true;
  if (reaches(read, owner)) throw plantReadOnly();
  return false;
}

/** What a caller who can read the plants of an owner can do with them. */
export function accessTo({ write, scopes: granted }: ReadAccess, owner: number): ShareAccess {
  return granted.has('plants:write') && reaches(write, owner) ? 'write' : 'read';
}
