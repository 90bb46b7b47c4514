/**
 * Tokens that users create for themselves, without an operator: how many they can have, on every storage alike.
 */
import { stateOf, type Grant, type Scope } from './access.ts';
import { fixedProblem, insufficientScope, Problem } from '../problem.ts';

/** Maximum number of active tokens of a user, counted when the user creates another. */
export const maxActiveTokens = 100;
/** Expired and revoked tokens of a user that remain when the user creates another: the newest ones. */
export const maxEndedTokens = 100;
/** Maximum number of tokens to count. Only operators can create more for a user. */
export const maxCountedTokens = 1_000;

/** A token that is created with another one. Times are in milliseconds since the Unix epoch. */
export interface OwnToken {
  hash: Uint8Array;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs: number | undefined;
  /** The latest expiry of tokens that are created with it; undefined for its own, and for none if it is an invitation. */
  renewableUntilMs?: number | undefined;
  /** How many tokens an invitation can create. */
  uses?: number | undefined;
  /** By which a repeated request finds the token, and derives it again (token.ts). */
  salt: string;
}

/** Maximum number of tokens that an invitation can create, and how long it is valid. */
export const maxInvitationUses = 100;
export const maxInvitationMs = 7 * 24 * 60 * 60 * 1_000;

/** A row of `tokens`, with null for times that do not apply. */
export type CountedToken = readonly [
  hash: Uint8Array,
  createdAt: number,
  expiresAt: number | null,
  revokedAt: number | null,
  uses: number | null,
];

/**
 * Which tokens of a user to delete before another is added, so that creating and revoking tokens does not fill the
 * disk. A Problem if the user already has as many active tokens as possible.
 */
export function tokensToDelete(
  tokens: readonly CountedToken[],
  nowMs: number,
  isInvitation: boolean,
): Uint8Array[] | Problem {
  const hasEnded = ([, , expiresAt, revokedAt, uses]: CountedToken) => {
    const times = { expiresAtMs: expiresAt ?? undefined, revokedAtMs: revokedAt ?? undefined };
    return uses === 0 || stateOf(times, nowMs) !== 'active';
  };
  const ended = tokens.filter(hasEnded);
  // Invitations are counted apart, so that one can create as many tokens as a user can have.
  const alike = tokens.filter((token) => (token[4] !== null) === isInvitation && !hasEnded(token));
  if (alike.length >= maxActiveTokens) {
    return new Problem(
      'too-many-tokens',
      `The user has the maximum of ${maxActiveTokens} active tokens. Revoke one that is not needed.`,
    );
  }
  const newestFirst = ended.toSorted(([, a], [, b]) => b - a);
  return newestFirst.slice(maxEndedTokens).map(([hash]) => hash);
}

export const invitationUsed = fixedProblem(
  'invitation-used',
  'This invitation was used. Ask whoever sent it for a new one.',
);

/** Maximum number of ids in a line: that of the operator's token, and the nearest ones. */
const maxLine = 16;

/**
 * The line of a token: the ids of those from which it descends, the operator's first, separated by spaces. Null for a token
 * that an operator or a manager has given to its user. This is the line of a token that is created with another one.
 */
export function lineBelow(line: string | null, id: string): string {
  const [first = id, ...nearer] = line === null ? [] : [...line.split(' '), id];
  return [first, ...nearer.slice(1 - maxLine)].join(' ');
}

/** The id of the operator's token. */
export function familyOf(line: string | null, id: string): string {
  return line?.split(' ', 1)[0] ?? id;
}

/**
 * Throws if a token cannot revoke another one of its user. A user creates a token with another one for what they trust
 * less: it can revoke itself and what descends from it (`token-restricted`). A token of an operator or an identity provider
 * can revoke all that have at most its scopes (`insufficient-scope`).
 */
export function assertCanRevoke(
  { caller, tokenId, family, isStored }: Grant,
  token: { id: string; line: string | null; scopes: readonly Scope[] },
): void {
  if (isStored && family !== tokenId) {
    if (token.id === tokenId || token.line?.split(' ').includes(tokenId)) return;
    throw new Problem(
      'token-restricted',
      'Your token was created with another one, so it can revoke only itself and the tokens that were created with it.',
    );
  }
  const missing = token.scopes.filter((scope) => !caller.scopes.has(scope)).join(' ');
  if (missing === '') return;
  throw insufficientScope(missing, `Your token lacks ${missing}, so it cannot revoke this one.`);
}
