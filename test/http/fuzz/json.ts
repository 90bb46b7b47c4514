/**
 * The rules of docs/reference/api.md for a body, checked on its bytes by an independent parser (RFC 8259):
 * no JSON.parse, no schema, nothing of src but the folding of searches.
 */

import { fold } from '../../../src/plants/folding.ts';

export interface NewPlant {
  name: string;
  tag: string;
  id: number | undefined;
}

export type Access = 'read' | 'write';

/** What a body says, or the place of each fault, as JSON pointers. */
export type Judgement<T> = T | { places: string[] };

export const maxId = 2n ** 53n - 1n;

type Value =
  | { kind: 'string'; text: string }
  | { kind: 'number'; token: string }
  | { kind: 'strings'; texts: string[] }
  | { kind: 'null' }
  | { kind: 'other' };

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function judgeBody(bytes: Uint8Array): Judgement<{ plant: NewPlant }> {
  const values = judgeMembers(bytes, isAllowed, 'name');
  if ('places' in values) return values;
  const [name, tag, id] = ['name', 'tag', 'id'].map((member) => values.get(member));
  return {
    plant: {
      name: name?.kind === 'string' ? name.text : '',
      tag: tag?.kind === 'string' ? tag.text : '',
      id: id?.kind === 'number' ? Number(exactInteger(id.token)) : undefined,
    },
  };
}

export interface PlantPatch {
  name?: string;
  tag?: string;
}

/** RFC 7396: null removes a member, which is an empty tag. A name cannot be removed. */
export function judgePatch(bytes: Uint8Array): Judgement<{ patch: PlantPatch }> {
  const isMember = (name: string, value: Value) =>
    name !== 'id' && (isAllowed(name, value) || (name === 'tag' && value.kind === 'null'));
  const values = judgeMembers(bytes, isMember);
  if ('places' in values) return values;
  if (values.size === 0) return { places: [''] };
  const [name, tag] = [values.get('name'), values.get('tag')];
  return {
    patch: {
      ...(name?.kind === 'string' && { name: name.text }),
      ...(tag !== undefined && { tag: tag.kind === 'string' ? tag.text : '' }),
    },
  };
}

export function judgeShare(bytes: Uint8Array): Judgement<{ access: Access }> {
  const isAccess = (value: Value | undefined): value is Value & { text: Access } =>
    value?.kind === 'string' && /^(?:read|write)$/.test(value.text);
  const isMember = (name: string, value: Value) => name === 'access' && isAccess(value);
  const values = judgeMembers(bytes, isMember, 'access');
  if ('places' in values) return values;
  const access = values.get('access');
  return isAccess(access) ? { access: access.text } : { places: [''] };
}

/** The only times in random bodies. */
export const times = {
  future: ['2100-01-31T12:00:00Z', '2100-02-28t13:30:00.5+01:30', '9999-12-31T23:59:59Z'],
  past: ['2000-02-29T00:00:00Z', '0000-01-01T00:00:00+23:59'],
  wrong: [
    '',
    '2100-02-29T00:00:00Z',
    '2100-01-31',
    '2100-01-31T12:00:00',
    '9999-12-31T23:59:59-01:00',
  ],
};
const scopes = ['plants:read', 'plants:write', 'shares:write'];

interface NewToken {
  scopes: string[] | undefined;
  label: string;
  isPast: boolean;
}

export function judgeNewToken(bytes: Uint8Array): Judgement<NewToken> {
  const isMember = (name: string, value: Value) => {
    if (name === 'label') return value.kind === 'string' && isTag(value.text);
    if (name === 'expiresAt')
      return value.kind === 'string' && [...times.future, ...times.past].includes(value.text);
    if (name !== 'scopes' || value.kind !== 'strings') return false;
    const { texts } = value;
    const isUnique = new Set(texts).size === texts.length;
    return isUnique && texts.length > 0 && texts.every((one) => scopes.includes(one));
  };
  const values = bytes.length === 0 ? new Map<string, Value>() : judgeMembers(bytes, isMember);
  if ('places' in values) return values;
  const [wanted, label, expiresAt] = ['scopes', 'label', 'expiresAt'].map((one) => values.get(one));
  return {
    scopes: wanted?.kind === 'strings' ? wanted.texts : undefined,
    label: label?.kind === 'string' ? label.text : '',
    isPast: expiresAt?.kind === 'string' && times.past.includes(expiresAt.text),
  };
}

/** The members of the one object that a body must be, or the place of each fault. */
function judgeMembers(
  bytes: Uint8Array,
  isMember: (name: string, value: Value) => boolean,
  required?: string,
): Judgement<Map<string, Value>> {
  let members: [string, Value][];
  try {
    members = new Reader(utf8.decode(bytes)).members();
  } catch (error) {
    if (error instanceof NotJson || error instanceof TypeError) return { places: [''] };
    throw error;
  }
  const faulty = new Set<string>();
  const values = new Map<string, Value>();
  for (const [name, value] of members) {
    if (values.has(name)) faulty.add(name);
    values.set(name, value);
    if (!isMember(name, value)) faulty.add(name);
  }
  if (required !== undefined && !values.has(required)) faulty.add(required);
  return faulty.size > 0 ? { places: [...faulty].map(pointerTo) } : values;
}

function isAllowed(name: string, value: Value): boolean {
  switch (name) {
    case 'name':
      return value.kind === 'string' && isName(value.text);
    case 'tag':
      return value.kind === 'string' && isTag(value.text);
    case 'id': {
      const id = value.kind === 'number' ? exactInteger(value.token) : undefined;
      return id !== undefined && id >= 1n && id <= maxId;
    }
    default:
      return false;
  }
}

function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** White_Space of Unicode without control characters, and U+FEFF, which is invisible too. */
const white = new Set(
  ' \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff',
);

export function isName(text: string): boolean {
  return isText(text, 200) && Array.from(text).some((one) => !white.has(one));
}

export function isTag(text: string): boolean {
  return isText(text, 100);
}

export function isSearch(text: string): boolean {
  return isTag(text) && fold(text).trim() !== '';
}

function isText(text: string, maxCodePoints: number): boolean {
  const points = Array.from(text, (one) => one.codePointAt(0) ?? 0);
  const isBad = (point: number) =>
    point < 0x20 || (point >= 0x7f && point <= 0x9f) || (point >= 0xd800 && point <= 0xdfff);
  return points.length <= maxCodePoints && !points.some(isBad);
}

/** The integer that a number of JSON is, computed from its digits; undefined if it is none or has over 20. */
export function exactInteger(token: string): bigint | undefined {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(token) ?? [];
  let digits = whole + fraction;
  let power = Number(exponent) - fraction.length;
  let [from, to] = [0, digits.length];
  while (digits[from] === '0') from++;
  while (to > from && digits[to - 1] === '0') to--;
  power += digits.length - to;
  digits = digits.slice(from, to);
  if (digits === '') return 0n;
  if (power < 0 || digits.length + power > 20) return undefined;
  const value = BigInt(digits) * 10n ** BigInt(power);
  return sign === '-' ? -value : value;
}

class NotJson extends Error {}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const escapes: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The members of the one object that the text must be, in their order. */
  members(): [string, Value][] {
    const members: [string, Value][] = [];
    this.#expect('{');
    if (!this.#passes('}')) {
      do {
        const key = this.#key();
        members.push([key, this.#value()]);
      } while (this.#passes(','));
      this.#expect('}');
    }
    this.#skipWhite();
    if (this.#at < this.#text.length) throw new NotJson();
    return members;
  }

  #key(): string {
    this.#skipWhite();
    const key = this.#string();
    this.#expect(':');
    return key;
  }

  #value(): Value {
    this.#skipWhite();
    const next = this.#text[this.#at];
    if (next === '"') return { kind: 'string', text: this.#string() };
    if (next === '[' || next === '{') {
      const from = this.#at;
      this.#nested();
      const texts = new Reader(this.#text.slice(from, this.#at)).#strings();
      return texts === undefined ? { kind: 'other' } : { kind: 'strings', texts };
    }
    for (const word of ['true', 'false', 'null']) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return { kind: word === 'null' ? 'null' : 'other' };
      }
    }
    number.lastIndex = this.#at;
    const [token] = number.exec(this.#text) ?? [];
    if (token === undefined) throw new NotJson();
    this.#at += token.length;
    return { kind: 'number', token };
  }

  /** The strings of the text if it is an array of them. It is well-formed. */
  #strings(): string[] | undefined {
    const texts: string[] = [];
    if (!this.#passes('[')) return undefined;
    if (this.#passes(']')) return texts;
    do {
      this.#skipWhite();
      if (this.#text[this.#at] !== '"') return undefined;
      texts.push(this.#string());
    } while (this.#passes(','));
    return texts;
  }

  /** Passes an array or an object. Not by recursion: a body may be nested 16,000 deep. */
  #nested(): void {
    const open: string[] = [];
    for (;;) {
      const opened = this.#opening();
      if (opened === undefined) this.#value();
      else if (!this.#passes(opened)) {
        open.push(opened);
        if (opened === '}') this.#key();
        continue; // its first value
      }
      for (let closing = open.at(-1); ; closing = open.at(-1)) {
        if (closing === undefined) return;
        if (this.#passes(',')) {
          if (closing === '}') this.#key();
          break; // its next value
        }
        this.#expect(closing);
        open.pop();
      }
    }
  }

  /** Passes an opening bracket and gives the one that closes it. */
  #opening(): string | undefined {
    if (this.#passes('[')) return ']';
    return this.#passes('{') ? '}' : undefined;
  }

  #string(): string {
    if (this.#text[this.#at++] !== '"') throw new NotJson();
    let value = '';
    for (;;) {
      const one = this.#text[this.#at++];
      if (one === undefined || one < ' ') throw new NotJson();
      if (one === '"') return value;
      value += one === '\\' ? this.#escaped() : one;
    }
  }

  #escaped(): string {
    const one = this.#text[this.#at++] ?? '';
    if (one !== 'u') {
      const value = escapes[one];
      if (value === undefined) throw new NotJson();
      return value;
    }
    const digits = this.#text.slice(this.#at, this.#at + 4);
    if (!/^[\da-fA-F]{4}$/.test(digits)) throw new NotJson();
    this.#at += 4;
    return String.fromCharCode(parseInt(digits, 16));
  }

  #skipWhite(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? '-')) this.#at++;
  }

  #passes(one: string): boolean {
    this.#skipWhite();
    if (this.#text[this.#at] !== one) return false;
    this.#at++;
    return true;
  }

  #expect(one: string): void {
    if (!this.#passes(one)) throw new NotJson();
  }
}
