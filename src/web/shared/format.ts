/**
 * Numbers, times and rights as people read them.
 */
import type { Scope } from '../../client/client.ts';

const numbers = new Intl.NumberFormat('en');
const times = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });

const lists = new Intl.ListFormat('en');
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium' });

export function formatCount(count: number): string {
  return numbers.format(count);
}

export function plantCount(count: number): string {
  return count === 1 ? '1 plant' : `${formatCount(count)} plants`;
}

export function formatTime(time: Date): string {
  return times.format(time);
}

export function formatDate(time: Date): string {
  return dates.format(time);
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
