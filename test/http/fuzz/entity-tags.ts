/**
 * `If-Match` and `If-None-Match`, from the grammar of RFC 9110, sections 5.6.1 and 8.8.3.
 */
import type { Bytes } from './request.ts';

export interface Tag {
  /** With its quotation marks. */
  opaque: Bytes;
  isWeak: boolean;
}

export type Tags = readonly Tag[] | 'any' | 'malformed' | undefined;

/** The tags of all lines of the header; undefined if there is none. */
export function judgeTags(lines: readonly Bytes[]): Tags {
  if (lines.length === 0) return undefined;
  const value = lines.join(', ');
  if (value === '*') return 'any';
  const tags: Tag[] = [];
  for (const element of elementsOf(value)) {
    if (element === '') continue;
    const isWeak = element.startsWith('W/');
    const opaque = isWeak ? element.slice(2) : element;
    const inner = opaque.slice(1, -1);
    const isQuoted = opaque.length >= 2 && opaque.startsWith('"') && opaque.endsWith('"');
    if (!isQuoted || Array.from(inner).some((one) => one <= ' ' || one === '"' || one === '\x7f'))
      return 'malformed';
    tags.push({ opaque, isWeak });
  }
  return tags;
}

/** The elements of a list: a comma between quotation marks separates none. */
function elementsOf(value: Bytes): Bytes[] {
  const elements: Bytes[] = [''];
  let isInside = false;
  for (const one of value) {
    if (one === '"') isInside = !isInside;
    if (one === ',' && !isInside) elements.push('');
    else elements.push(`${elements.pop()}${one}`);
  }
  return elements.map((element) => element.replace(/^[ \t]+|[ \t]+$/g, ''));
}

/** Whether one of the tags is that of the plant. */
export function matches(tags: Tags, tag: string | undefined, how: 'strongly' | 'weakly'): boolean {
  if (tags === undefined || tags === 'malformed') return false;
  if (tags === 'any') return true;
  return tags.some(({ opaque, isWeak }) => opaque === tag && !(isWeak && how === 'strongly'));
}
