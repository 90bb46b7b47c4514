/**
 * What a search finds: a name or a tag contains the text, both folded.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { fold } from '../../src/plants/folding.ts';

/** A text, and what is searched for in it. */
type Pairs = readonly (readonly [text: string, wanted: string])[];

const found: Pairs = [
  // Case
  ['Monstera deliciosa', 'monstera'],
  ['monstera deliciosa', 'DELICIOSA'],
  ['Ficus lyrata', 's l'],
  ['ΡΟΔΟΝ', 'ροδον'],
  ['Роза', 'РОЗА'],
  // Accents, composed or not
  ['Épinette', 'epinette'],
  ['Epinette', 'Épinette'],
  ['E\u0301pinette', 'épinette'],
  ['Épinette', 'E\u0301pinette'],
  ['Crème brûlée', 'CREME BRULEE'],
  ['Nguyễn', 'nguyen'],
  ['Åkerbär', 'akerbar'],
  ['Zürich', 'zurich'],
  ['Señorita', 'senorita'],
  ['Ёлка', 'елка'],
  ['ῥόδον', 'ροδον'],
  ['שָׁלוֹם', 'שלום'],
  ['وَرْدَة', 'وردة'],
  ['a\u0315\u0300\u05AEb', 'ab'],
  // Letters that Unicode does not decompose
  ['Straße', 'strasse'],
  ['STRASSE', 'straße'],
  ['GROẞE', 'grosse'],
  ['Łódź', 'lodz'],
  ['lodz', 'ŁÓDŹ'],
  ['Smørrebrød', 'smorrebrod'],
  ['Đà Lạt', 'da lat'],
  ['Ægir', 'aegir'],
  ['Œillet', 'oeillet'],
  ['Þór', 'thor'],
  ['Garður', 'gardur'],
  ['Ħaż-Żabbar', 'haz-zabbar'],
  ['Ŧ', 't'],
  ['Ŋ', 'n'],
  // Turkish
  ['İstanbul', 'istanbul'],
  ['ISTANBUL', 'İstanbul'],
  ['Iğdır', 'igdir'],
  ['ısırgan', 'isirgan'],
  // Sigma
  ['ΡΟΔΟΣ', 'ροδος'],
  ['ρόδος', 'ροδοσ'],
  // Other forms of a letter
  ['ﬁcus', 'ficus'],
  ['Ｆｉｃｕｓ', 'ficus'],
  ['ﾓﾝｽﾃﾗ', 'モンステラ'],
  ['ｶﾞｰﾃﾞﾆｱ', 'ガーデニア'],
  ['\u212Aelvin', 'kelvin'],
  ['5 m²', 'm2'],
  ['Bed\u00A01', 'bed 1'],
  ['№ 5', 'no 5'],
  ['𝓡𝓸𝓼𝓮', 'rose'],
  // What keyboards do not have
  ['Abelia × grandiflora', 'abelia x grandiflora'],
  ['Hosta ‘Patriot’', "'patriot'"],
  ['“Peace” rose', '"peace"'],
  ['Bed 1–2', '1-2'],
  // Emoji
  ['Monstera 🌵', '🌵'],
  ['❤\uFE0F rose', '❤ rose'],
  ['❤', '❤\uFE0F'],
  ['1\uFE0F\u20E3', '1'],
  ['👩‍🌾', '👩'],
  // Hangul and other scripts
  ['한국 장미', '장미'],
  ['\u1112\u1161\u11AB\u1100\u116E\u11A8', '한국'],
  ['한국', '\u1112\u1161\u11AB'],
  ['龜背竹', '背'],
  ['バラ', 'バラ'],
  ['ハ\u3099ラ', 'バラ'],
  ['गुलाब', 'गुलाब'],
  ['กุหลาบ', 'กุหลาบ'],
];

const notFound: Pairs = [
  ['Monstera', 'monstera deliciosa'],
  ['Monstera', 'montera'],
  ['Monstera', 'm o'],
  ['Bed 1', 'bed1'],
  ['Strase', 'straße'],
  ['Rosa', 'роса'], // Cyrillic letters that look the same
  ['한국', '하'], // a syllable is one letter
  ['각', '가'],
  ['バラ', 'ハラ'], // different words
  ['गुलाब', 'गलाब'],
  ['กุหลาบ', 'กหลาบ'],
  ['Monstera 🌵', '🌱'],
  ['👩', '👩‍🌾'],
  ['100%', '1_0'], // not a pattern
  ['Monstera', 'm%a'],
  ['Monstera', 'M*'],
  ['Monstera', '[m]'],
];

it('a text is found whatever its case, its accents, and the form of its letters', () => {
  for (const [text, wanted] of found)
    assert.ok(fold(text).includes(fold(wanted)), `${wanted} in ${text}`);
});

it('other words are not found', () => {
  for (const [text, wanted] of notFound)
    assert.ok(!fold(text).includes(fold(wanted)), `${wanted} in ${text}`);
});

const codePoints = Array.from({ length: 0x11_0000 }, (_, point) => String.fromCodePoint(point));
const characters = codePoints.filter((one) => /^[^\p{Cs}\p{Cn}\p{Co}]$/u.test(one));

it('folding again changes nothing', () => {
  for (const one of characters) {
    for (const text of [one, `a${one}\u0301`]) {
      assert.equal(fold(fold(text)), fold(text), text);
    }
  }
});

it('an upper-case letter finds the lower-case one, unless Unicode has no such pair', () => {
  const exceptions = characters.filter((one) => fold(one.toLowerCase()) !== fold(one));
  assert.deepEqual(exceptions, []);
});

it('text of ASCII changes only its case, and no other text becomes empty except accents', () => {
  const ascii = characters.slice(0, 128).join('');
  assert.equal(fold(ascii), ascii.toLowerCase());
  const vanished = characters.filter((one) => fold(one) === '');
  assert.ok(vanished.every((one) => /^\p{M}$/u.test(one)));
  assert.ok(vanished.includes('\u0301') && vanished.includes('\uFE0F'));
});

it('texts that are folded together become the same as one by one', () => {
  const texts = characters.map((one) => `${one}Σ`).filter((one) => !one.startsWith('\0'));
  assert.equal(fold(texts.join('\0')), texts.map(fold).join('\0'));
});
