/**
 * Which plants the table shows. It is in the address after `#`, so that reloading the page and the back button work.
 */
import type { Plant } from '../../client/client.ts';
import { hashParameter, joined, sentence, type Text } from '../shared/dom.ts';

/** A member is undefined if it excludes no plant. */
export interface View {
  /** The whole tag. */
  tag?: string | undefined;
  /** A part of the name or the tag. */
  q?: string | undefined;
  /** By id if it is undefined. */
  sort?: 'name' | '-name' | undefined;
}

export function viewOfAddress(): View {
  const [q, order] = [hashParameter('q'), hashParameter('sort')];
  return {
    tag: hashParameter('tag'),
    q: q !== undefined && isText(q) ? q : undefined,
    sort: order === 'name' || order === '-name' ? order : undefined,
  };
}

/** Whether a plant has the tag of the view. */
export function hasTag({ tag }: View, plant: Plant): boolean {
  return tag === undefined || plant.tag === tag;
}

/** Whether the service can search for the text. Accents alone, such as a key that waits for its letter, are none. */
export function isText(text: string): boolean {
  return !/^[\s\p{M}]*$/u.test(text.normalize('NFKD'));
}

/** The view as parameters of an address. */
export function parametersOf({ tag, q, sort }: View): string {
  const parameters = new URLSearchParams();
  if (tag !== undefined) parameters.set('tag', tag);
  if (q !== undefined) parameters.set('q', q);
  if (sort !== undefined) parameters.set('sort', sort);
  return parameters.toString();
}

/** What the plants of the view have in common, in words that follow "plants". */
export function textOf({ tag, q }: View): Text {
  const parts: Text[] = [];
  if (tag !== undefined) parts.push(sentence` with the tag “${tag}”`);
  if (q !== undefined) parts.push(sentence` containing “${q}”`);
  return joined(parts, '');
}
