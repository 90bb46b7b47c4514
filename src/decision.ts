/**
 * Why a user can or cannot access a plant: the rules of access.ts, one by one, for the operator who is asked. A test
 * compares each decision with what the service does.
 */
import { stateOf, type Role, type Scope, type ShareAccess } from './access.ts';

export const operations = ['read', 'write'] as const;
export type Operation = (typeof operations)[number];

/**
 * - `owner`, `manager`, `share`: what allows it
 * - `share-for-reading`: the owner shares, but only for reading
 * - `share-not-in-effect`: the owner shares, but the user has received too many shares before
 * - `no-access`: none of these applies
 * - `no-plant`: the store has no such plant
 * - `scope`, `ended`: the token does not allow it, though its user can
 */
export type Rule =
  | 'owner'
  | 'manager'
  | 'share'
  | 'share-for-reading'
  | 'share-not-in-effect'
  | 'no-access'
  | 'no-plant'
  | 'scope'
  | 'ended';

export interface Decision {
  allowed: boolean;
  rule: Rule;
}

/** A user and a plant. Users are given by name. */
export interface Question {
  user: string;
  role: Role;
  /** Undefined if there is no such plant. */
  owner: string | undefined;
  /** What the owner shares with the user; undefined if no share is in effect. */
  share: ShareAccess | undefined;
  /** Whether the owner shares, but without effect, because the user receives too many older shares. */
  isOverLimit?: boolean;
}

export function decideForUser(
  { user, role, owner, share, isOverLimit = false }: Question,
  operation: Operation,
): Decision {
  if (owner === undefined) return { allowed: false, rule: 'no-plant' };
  if (owner === user) return { allowed: true, rule: 'owner' };
  if (role === 'manager') return { allowed: true, rule: 'manager' };
  if (share === undefined)
    return { allowed: false, rule: isOverLimit ? 'share-not-in-effect' : 'no-access' };
  if (operation === 'write' && share === 'read')
    return { allowed: false, rule: 'share-for-reading' };
  return { allowed: true, rule: 'share' };
}

export interface TokenFacts {
  scopes: readonly Scope[];
  expiresAtMs: number | undefined;
  revokedAtMs: number | undefined;
}

/** `ofUser` is the decision for the user of the token. */
export function decideForToken(
  token: TokenFacts,
  operation: Operation,
  ofUser: Decision,
  nowMs: number,
): Decision {
  if (!ofUser.allowed) return ofUser;
  if (stateOf(token, nowMs) !== 'active') return { allowed: false, rule: 'ended' };
  if (!token.scopes.includes(`plants:${operation}`)) return { allowed: false, rule: 'scope' };
  return ofUser;
}
