/**
 * Which plants the table shows. It is in the address after `#`, so that reloading the page and the back button work.
 */
import { hashParameter } from '../shared/dom.ts';

/** A member is undefined if it excludes no plant. */
export interface View {
  /** The whole tag. */
  tag?: string | undefined;
}

export function viewOfAddress(): View {
  return { tag: hashParameter('tag') };
}

/** The view as parameters of an address. */
export function parametersOf({ tag }: View): string {
  const parameters = new URLSearchParams();
  if (tag !== undefined) parameters.set('tag', tag);
  return parameters.toString();
}

/** What the plants of the view have in common, in words that follow "plants". */
export function textOf({ tag }: View): string {
  const parts: string[] = [];
  if (tag !== undefined) parts.push(` with the tag “${tag}”`);
  return parts.join('');
}
