/**
 * Numbers and times as people read them.
 */
const numbers = new Intl.NumberFormat('en');
const days = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });

export function formatCount(count: number): string {
  return numbers.format(count);
}

export function plantCount(count: number): string {
  return count === 1 ? '1 plant' : `${formatCount(count)} plants`;
}

export function formatTime(time: Date): string {
  return days.format(time);
}

/** A tag as a text: a plant without a tag has an empty one. */
export function tagText(tag: string): string {
  return tag === '' ? 'no tag' : tag;
}
