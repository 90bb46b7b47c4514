/**
 * Tokens as people read them.
 */
import type { OwnToken } from '../../client/client.ts';
import { formatDate, formatTime, rightsText } from '../shared/format.ts';

/** What a token is called: its label, or its id. */
export function titleOf({ label, id }: OwnToken): string {
  return label === '' ? id : label;
}

/** What the list shows about a token, besides its label. */
export function factsOf(token: OwnToken): string {
  const { id, scopes, createdAt, expiresAt, revokedAt, lastUsedAt, state, current } = token;
  const time = (text: string, at: string) => `${text} ${formatTime(new Date(at))}`;
  const facts = [rightsText(scopes), `created ${formatDate(new Date(createdAt))}`];
  if (revokedAt !== undefined) facts.push(time('revoked', revokedAt));
  else if (expiresAt !== undefined)
    facts.push(time(state === 'expired' ? 'expired' : 'valid until', expiresAt));
  else facts.push('does not expire');
  if (lastUsedAt !== undefined) facts.push(time('last used', lastUsedAt));
  else if (!current) facts.push('never used');
  if (token.label !== '') facts.push(id);
  return facts.join(' · ');
}

/** How long a token is valid that expires with this one. */
export function untilText(expiresAt: string | undefined): string {
  if (expiresAt === undefined) return 'until you revoke it';
  return `until ${formatDate(new Date(expiresAt))}, like this one`;
}
