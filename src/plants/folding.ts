/**
 * Folds text for the search: two texts that differ only in case, accents and similar spellings become equal. One
 * function for all storages, because databases fold differently. docs/reference/api.md describes the rule.
 */

const isAscii = /^[\0-\x7F]*$/;

/**
 * The marks of alphabets, such as accents, and what selects the style of an emoji. Marks of other scripts are vowels, as
 * in कि, or belong to a letter, as in が: without them, it would be another word.
 */
const accents =
  /[[\p{M}&&[\p{Script=Inherited}\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Hebrew}\p{Script=Arabic}]]--[\u3099\u309A]]/gv;

/** Letters that Unicode does not decompose, the other sigma, and what keyboards do not have. */
const replacements = new Map([
  ['ß', 'ss'],
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['þ', 'th'],
  ['ð', 'd'],
  ['đ', 'd'],
  ['ħ', 'h'],
  ['ı', 'i'],
  ['ł', 'l'],
  ['ŋ', 'n'],
  ['ø', 'o'],
  ['ŧ', 't'],
  ['ς', 'σ'],
  ['×', 'x'], // of hybrids: Abelia × grandiflora
  ['‘', "'"],
  ['’', "'"],
  ['“', '"'],
  ['”', '"'],
  ['‐', '-'],
  ['–', '-'],
  ['—', '-'],
]);
const replaced = new RegExp(`[${[...replacements.keys()].join('')}]`, 'g');

/** The folded text. Folding it again changes nothing. */
export function fold(text: string): string {
  if (isAscii.test(text)) return text.toLowerCase();
  return text
    .normalize('NFKD')
    .replace(accents, '')
    .toLowerCase()
    .replace(replaced, (one) => replacements.get(one) ?? one)
    .normalize('NFC'); // syllables of Hangul, and が, become one character again
}
