/**
 * Tokens that users create for themselves, without an operator: how many they can have, on every storage alike.
 */
import type { Scope } from './access.ts';

/** Maximum number of active tokens of a user, counted when the user creates another. */
export const maxActiveTokens = 100;
/** Expired and revoked tokens of a user that remain when the user creates another: the newest ones. */
export const maxEndedTokens = 100;
/** Maximum number of tokens to count. Only operators can create more for a user. */
export const maxCountedTokens = 1_000;

/** A token that a user creates with another one. Times are in milliseconds since the Unix epoch. */
export interface OwnToken {
  hash: Uint8Array;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs: number | undefined;
}

/** A row of `tokens`, with null for times that do not apply. */
export type CountedToken = readonly [
  hash: Uint8Array,
  createdAt: number,
  expiresAt: number | null,
  revokedAt: number | null,
];

/** Whether a token has neither expired nor been revoked, as `stateOf` (access.ts) defines it. */
export function isActive(
  expiresAt: number | null,
  revokedAt: number | null,
  nowMs: number,
): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > nowMs);
}

/**
 * Which tokens of a user to delete before another is added, so that creating and revoking tokens does not fill the
 * disk. Undefined if the user already has as many active tokens as possible.
 */
export function tokensToDelete(
  tokens: readonly CountedToken[],
  nowMs: number,
): Uint8Array[] | undefined {
  const ended = tokens.filter(([, , expires, revoked]) => !isActive(expires, revoked, nowMs));
  if (tokens.length - ended.length >= maxActiveTokens) return undefined;
  const newestFirst = ended.toSorted(([, a], [, b]) => b - a);
  return newestFirst.slice(maxEndedTokens).map(([hash]) => hash);
}
