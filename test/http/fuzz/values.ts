/**
 * Random values of parameters and of JSON: as a schema of the document allows them, at its limits, and wrong in every way
 * that a client may get them wrong.
 */
import * as fc from 'fast-check';
import type { Schema } from './document.ts';
import { utf8Bytes, type Bytes } from './request.ts';

const { constantFrom } = fc;

/** One of these texts, which have white space between them. */
export function oneOf(texts: string): fc.Arbitrary<string> {
  return constantFrom(...texts.trim().split(/\s+/));
}

/** The first, and once in `weight` times the second. */
export function rarely<T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>, weight = 8) {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: rare });
}

const soundPiece = constantFrom(
  ...Array.from("aB7 é🌵𝒳\u0301\u2028\ufeff\uffff\u00a0\u200d\u202e<>'&%+{]:,", utf8Bytes),
  ...String.raw`\u0041 \ud83c\udf35 \/ \\ \"`.split(' '),
);
const badPiece = constantFrom(
  ...String.raw`\u0000 \u001f \u007f \u0085 \n \ud800 \udc00 \udc00\ud800 \x41 \u00g0 \ "`.split(
    ' ',
  ),
  ...Array.from('\u007f\u0085\u0000\n', utf8Bytes),
  // No UTF-8.
  ...'\xff \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82'.split(' '),
);
const soundText = fc
  .array(soundPiece, { minLength: 1, maxLength: 6 })
  .map((pieces) => pieces.join(''));
const text = rarely(
  soundText,
  fc.tuple(soundText, badPiece, soundText).map((all) => all.join('')),
  12,
);
const note = rarely(constantFrom(...['', 'a', 'A', ' a', 'é ', '🌱 '].map(utf8Bytes)), text, 4);

const time = rarely(
  oneOf('2100-01-31T12:00:00Z 2100-02-28t13:30:00.5+01:30 9999-12-31T23:59:59Z'),
  oneOf(`2000-02-29T00:00:00Z 0000-01-01T00:00:00+23:59 2100-02-29T00:00:00Z 2100-01-31 2100-01-31T12:00:00
      9999-12-31T23:59:59-01:00`),
  2,
);

/** The session replaces it with a time between two of its groups, which has the same length. */
export const someMoment = '1111-11-11T11:11:11.111Z';

/** Values that requests meet again, by the name of their parameter or member. */
const usual: Record<string, fc.Arbitrary<Bytes>> = {
  id: fc.integer({ min: 1, max: 7 }).map(String),
  user: oneOf('alice alice bob bob maria nobody'),
  tokenId: oneOf('{spare} {spare} {other} {expired} {revoked} {unknown}'),
  limit: oneOf('1 2 3 6 100'),
  after: oneOf('0 1 2 5 9 alice 0-0 0-999999999 999999999999999-0 999999999999999-999999999'),
  count: oneOf('true true false'),
  name: text,
  tag: note,
  label: note,
  q: rarely(
    constantFrom(...['e', 'E', 'É', 'ı', ' ', '\u0301', '\ufe0f', '¨'].map(utf8Bytes)),
    note,
  ),
  expiresAt: time,
  renewableUntil: time,
  since: rarely(fc.constant(someMoment), time, 3),
};

/** The text of a parameter or a member, without its encoding. */
function textOf(schema: Schema, name: string): fc.Arbitrary<Bytes> {
  const known: Bytes[] = schema['enum'] ?? schema['examples'] ?? [];
  const familiar = usual[name] ?? constantFrom(...known.map(String));
  const { minimum: min, maximum: max, maxLength: longest } = schema;
  const ofNumber = [min, max].flatMap((edge?: number) =>
    edge === undefined ? [] : [edge - 1, edge, edge + 1],
  );
  const ofText =
    longest === undefined
      ? []
      : ['𝒳', 'é', '\u3000'].flatMap((one) =>
          [longest, longest + 1].map((size) => one.repeat(size)),
        );
  const edges = [...ofNumber.map(String), ...ofText.map(utf8Bytes)];
  return edges.length === 0 ? familiar : rarely(familiar, constantFrom(...edges), 12);
}

const oddNumber = fc.oneof(
  oneOf(`0 -0 -1 1.0 1e0 10e-1 1.5 1.20e1 0.12e2 01 +1 1. .5 1e 0x1 NaN 9007199254740992 9007199254740993
    9007199254740991.4 1.00000000000000000001 1e400 -1e400 1e-400 1e99999999999 100000000000000000000e-20`),
  constantFrom(`1${'0'.repeat(300)}e-300`),
);
const oddJson = fc.oneof(
  oddNumber,
  oneOf('null true [] {} [1] {"id":1} "1" "" [[{"a":[1e999,{}]}]] nul [1,] [1,[2]'),
  constantFrom('', ...[100, 1_000, 3_000].map((depth) => '['.repeat(depth) + ']'.repeat(depth))),
);
const oddMember = fc
  .tuple(
    oneOf(
      String.raw`"nmae" "Name" "n\u0061me" "t\u0061g" "\u0069d" "__proto__" "constructor" "" "a/b~c" "toString"
        "name" "tag" "id" "owner" "store" "user" "role" "access" "\ud800" "na\u0000me" name 'name'`,
    ),
    fc.oneof(
      usual['id'] ?? oddNumber,
      oddJson,
      text.map((one) => `"${one}"`),
    ),
  )
  .map((both) => both.join(':'));

/** JSON for the schema, most of it sound. */
export function jsonOf(schema: Schema, name = ''): fc.Arbitrary<Bytes> {
  const { type, properties = {}, required = [], items } = schema;
  if (type === 'object') {
    const members = Object.entries<Schema>(properties).map(([key, one]) => {
      const member = rarely(jsonOf(one, key), oddJson, 30).map((value) => `"${key}":${value}`);
      const none = constantFrom('');
      return rarely(member, none, required.includes(key) ? 30 : 2);
    });
    return fc
      .tuple(...members, rarely(constantFrom(''), oddMember, 25))
      .map((all) => `{${all.filter(Boolean).join(',')}}`);
  }
  if (type === 'array') return listOf(items).map((all) => JSON.stringify(all));
  const value = textOf(schema, name);
  if (type === 'integer') return rarely(value, oddNumber, 20);
  const quoted = value.map((one) => `"${one}"`);
  return [type].flat().includes('null') ? rarely(quoted, constantFrom('null'), 4) : quoted;
}

function listOf({ enum: all }: Schema): fc.Arbitrary<string[]> {
  return rarely(
    fc.shuffledSubarray(all, { minLength: 1 }),
    fc.array(constantFrom(...all, 'other', ''), { maxLength: 3 }),
    15,
  );
}

const maxBodyBytes = 16_384;

/** The body, and sometimes what a client may have done to it. */
export function brokenAtTimes(body: fc.Arbitrary<Bytes>): fc.Arbitrary<Bytes> {
  const broken = fc.oneof(
    fc.tuple(constantFrom(' \r\n\t', '\xef\xbb\xbf', '[', '//x\n', '\x00'), body).map(joined),
    fc
      .tuple(body, constantFrom(' \r\n\t', 'x', '}', '{}', ',', '\x00', '\xff', '/**/'))
      .map(joined),
    fc.tuple(body, fc.nat(60)).map(([sound, at]) => sound.slice(0, at)),
    fc
      .tuple(body, constantFrom(-1, 0, 1, 900, 30_000))
      .map(([sound, more]) => sound.padEnd(maxBodyBytes + more)),
    body.map((sound) => sound.replace(/,?\}$/, ',"name":"a","name":"b"}')),
    oddJson,
    oneOf(`[{"name":"a"}] {'name':'a'} name=a {,} {}`),
    constantFrom('GET /plants HTTP/1.1\r\nHost: x\r\n\r\n', '0\r\n\r\n', '{"name":"a"}\r\n\r\nX'),
  );
  return rarely(body, broken, 10);
}

const joined = (all: readonly Bytes[]) => all.join('');

/** Percent-encoded, except for placeholders. */
const encoded = (bytes: Bytes) =>
  bytes.replace(/[^\w.~{}-]/g, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`);

/** What is wrong in a path or a query, or only spelled in another way. */
const oddText = fc.oneof(
  oneOf(`0 -0 -1 01 +1 1.0 1e2 0x1 NaN x 1%00 %00 %20 %205 5%20 %31 1%2F2 a%252Fb a+b %41 %61lice alice%00 ALICE %C2%85
    %D9%A3 %EF%BB%BF %E3%80%80 %ED%A0%80 %EF%AC%80 %F0%9F%8C%B5 % %zz %ff 1,2 1;x=1 . .. %2e%2e * __proto__ '%20OR%201=1
    9007199254740992 90071992547409910 99999999999999999999 2147483648 - 1- 1-+1 01-1 1-1- 1-1-1 1.0-1 9007199254740993-1
    1-1000000000 {spare}0 {spare}/{spare} <alice> id, ,id ID id,id owner`),
  constantFrom('', 'x'.repeat(4_000)),
);

function valueOf(schema: Schema, name: string): fc.Arbitrary<Bytes> {
  if (schema['type'] === 'array')
    return listOf(schema['items']).chain((all) =>
      constantFrom(all.join(), all.join('%2C'), all.join(`&${name}=`)),
    );
  return textOf(schema, name).map(encoded);
}

/** A segment of a path. */
export function segmentOf(schema: Schema, name: string): fc.Arbitrary<Bytes> {
  return rarely(valueOf(schema, name), oddText, 15);
}

const oddPair = fc.oneof(
  fc.tuple(oneOf('limit after tag q sort count fields'), oddText).map((both) => both.join('=')),
  oneOf(`limit=1&limit=1 after=1&after=2 fields=id&fields= tag=a&tag=a q=a&q=a limit= tag Limit=1 limit[]=1 li%6Dit=1
    page=2 access_token=1 __proto__=1 % %FF=1 %&% = =1 & && %00=1 ? a=b=c`),
);

/** Parameters of a query, few of them wrong. */
export function queryOf(all: readonly { name: string; schema: Schema }[]): fc.Arbitrary<Bytes> {
  const pairs = all.map(({ name, schema }) =>
    fc.oneof(
      constantFrom(''),
      valueOf(schema, name).map((value) => `${name}=${value}`),
    ),
  );
  return fc
    .tuple(...pairs, rarely(constantFrom(''), oddPair, 15))
    .map((texts) => texts.filter(Boolean).join('&'))
    .map((query) => (query === '' ? '' : `?${query}`));
}
