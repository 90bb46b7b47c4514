/**
 * Text of other people, on a terminal and on the page. Control and format characters could change what is shown, so they
 * become visible.
 */

// Joiners are part of emoji and of words.
export const hidden = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

export function printable(text: string): string {
  const codeOf = (character: string) => (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return text.replaceAll(hidden, (character) => `<U+${codeOf(character).padStart(4, '0')}>`);
}
