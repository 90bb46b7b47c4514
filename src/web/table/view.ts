/**
 * Which plants the table shows. It is in the address after `#`, so that reloading the page and the back button work.
 */
import { hashParameter } from '../shared/dom.ts';

/** A member is undefined if it excludes no plant. */
export interface View {
  /** The whole tag. */
  tag?: string | undefined;
  /** A part of the name or the tag. */
  q?: string | undefined;
}

export function viewOfAddress(): View {
  return { tag: hashParameter('tag'), q: hashParameter('q') };
}

/** The view as parameters of an address. */
export function parametersOf({ tag, q }: View): string {
  const parameters = new URLSearchParams();
  if (tag !== undefined) parameters.set('tag', tag);
  if (q !== undefined) parameters.set('q', q);
  return parameters.toString();
}

/** What the plants of the view have in common, in words that follow "plants". */
export function textOf({ tag, q }: View): string {
  const parts: string[] = [];
  if (tag !== undefined) parts.push(` with the tag “${tag}”`);
  if (q !== undefined) parts.push(` containing “${q}”`);
  return parts.join('');
}
