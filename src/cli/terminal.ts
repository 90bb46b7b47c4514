/**
 * Text of other people on a terminal.
 */
import stringWidth from 'string-width';
import { hidden, printable } from '../client/printable.ts';

const emoji = /\p{RGI_Emoji}|\p{Emoji_Presentation}/gv;

/** Text of one or more lines as the stream shows it: as it is, unless the stream is a terminal. */
export function shownOn({ isTTY }: { isTTY?: boolean }, text: string): string {
  return isTTY ? text.replaceAll(/[^\n]+/g, printable) : text;
}

/** JSON with the same meaning, in which every character is visible. Each half of a surrogate pair is one escape. */
export function printableJson(value: unknown): string {
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replaceAll(hidden, (text) => text.replaceAll(/[^]/g, escapeUnit));
}

/** The number of columns that a terminal uses for the text. The library does not know newer emoji. */
export function widthOf(text: string): number {
  return stringWidth(text.replaceAll(emoji, '  '));
}
