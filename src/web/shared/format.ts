/**
 * Numbers, times and rights as people read them.
 */
import type { Scope } from '../../client/client.ts';

const lists = new Intl.ListFormat('en');
const numbers = new Intl.NumberFormat('en');
const hours = new Intl.DateTimeFormat('en', { timeStyle: 'short' });
const times = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });

export const formatCount = (count: number) => numbers.format(count);
export const formatTime = (time: string) => times.format(new Date(time));

/** "today, 2:03 PM", or the day of the time if it is another one. */
export function formatDay(time: string): string {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? `today, ${hours.format(date)}` : times.format(date);
}

/** "1 plant", or "2,000 plants". */
export function countOf(
  count: number,
  what: 'plant' | 'row' | 'label' | 'page' | 'open invitation',
): string {
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** What a token with a scope allows. */
export const scopeTexts: Record<Scope, string> = {
  'plants:read': 'see plants',
  'plants:write': 'add, edit and delete plants',
  'shares:write': 'share plants',
  'webhooks:write': 'manage webhooks',
  'users:write': 'manage users',
};

/** What a token with these scopes allows. */
export function rightsText(scopes: readonly Scope[]): string {
  return lists.format(scopes.map((scope) => scopeTexts[scope]));
}

/** A word at the beginning of a sentence. */
export function titleOf(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}
