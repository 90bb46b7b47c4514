/**
 * Numbers, times and rights as people read them.
 */
import type { Scope } from '../../client/client.ts';

const numbers = new Intl.NumberFormat('en');
const times = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium' });
const lists = new Intl.ListFormat('en');

export const formatCount = (count: number) => numbers.format(count);
export const formatTime = (time: string) => times.format(new Date(time));
export const formatDate = (time: string) => dates.format(new Date(time));

/** "1 plant", or "2,000 plants". */
export function countOf(count: number, what: 'plant' | 'row'): string {
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** What a token with these scopes allows, in words. */
export function rightsText(scopes: readonly Scope[]): string {
  const canRead = scopes.includes('plants:read');
  const rights = canRead ? ['Read'] : [];
  if (scopes.includes('plants:write')) rights.push(canRead ? 'change' : 'Add');
  if (scopes.includes('shares:write')) rights.push(rights.length > 0 ? 'share' : 'Share');
  return rights.length === 1 ? `${rights[0]} only` : lists.format(rights);
}

/** A tag as a text: a plant without a tag has an empty one. */
export function tagText(tag: string): string {
  return tag === '' ? 'no tag' : tag;
}
