/**
 * Random bodies: plants to create, and JSON that is wrong in every way that a client may get it wrong.
 */
import * as fc from 'fast-check';
import { oneLine, oneOf, rarely } from './pick.ts';
import { utf8Bytes, type Bytes } from './request.ts';

const { constantFrom } = fc;

const maxBodyBytes = 16_384;
/** The only times in random bodies. */
const times = {
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

/** The pieces of text between quotes. */
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
  '\xff',
  '\xc0\xaf',
  '\xed\xa0\x80',
  '\xf4\x90\x80\x80',
  '\xe2\x82',
);
const atTheLimit = constantFrom(
  ...['', ' ', '\u3000\u00a0', '\u200b', `${'a'.repeat(200)} `].map(utf8Bytes),
  ...[100, 101, 200, 201].flatMap((count) =>
    ['𝒳', 'é', '\\u00e9'].map((one) => utf8Bytes(one.repeat(count))),
  ),
);
export const soundText = fc
  .array(soundPiece, { minLength: 1, maxLength: 6 })
  .map((all) => all.join(''));
const text = fc.oneof(
  { weight: 12, arbitrary: soundText },
  { weight: 1, arbitrary: atTheLimit },
  { weight: 1, arbitrary: fc.tuple(soundText, badPiece, soundText).map((all) => all.join('')) },
);
const quoted = text.map((one) => `"${one}"`);
const tag = rarely(constantFrom('', 'a', 'A', 'a b', utf8Bytes('é'), utf8Bytes('🌱')), text);

/** Few ids, so that requests meet the same plants. After the largest one, each service would assign random ids. */
export const id = rarely(
  fc.integer({ min: 1, max: 14 }).map(String),
  oneOf('2147483648 4503599627370497 9007199254000000'),
  40,
);
const oddNumber = fc.oneof(
  oneOf(`0 -0 -1 1.0 1e0 10e-1 1.5 1.20e1 0.12e2 01 +1 1. .5 1e 0x1 NaN 9007199254740992 9007199254740993
    9007199254740991.4 1.00000000000000000001 1e400 -1e400 1e-400 1e99999999999 100000000000000000000e-20`),
  constantFrom(`1${'0'.repeat(300)}e-300`),
);
const oddValue = fc.oneof(
  oddNumber,
  oneOf('null true [] {} [1] {"id":1} "1" "" [[{"a":[1e999,{}]}]] nul [1,] [1,[2]'),
  constantFrom('', ...[100, 1_000, 3_000].map((depth) => '['.repeat(depth) + ']'.repeat(depth))),
);

type Member = readonly [key: Bytes, value: Bytes];
const oddKey = oneOf(
  String.raw`"nmae" "Name" "n\u0061me" "t\u0061g" "\u0069d" "__proto__" "constructor" "" "a/b~c" "toString"
    "owner" "store" "\ud800" "na\u0000me" name 'name'`,
);
const anyMember = fc.tuple(
  fc.oneof(oneOf('"name" "tag" "id"'), oddKey),
  fc.oneof(quoted, id, oddValue),
);
const members: fc.Arbitrary<Member[]> = fc
  .tuple(quoted, fc.option(tag), fc.option(rarely(id, oddNumber)))
  .map(([name, its, number]) => [
    ['"name"', name],
    ...(its === null ? [] : [['"tag"', `"${its}"`] as const]),
    ...(number === null ? [] : [['"id"', number] as const]),
  ]);

/** Most of them sound. */
export const plant = members.map(objectOf);

/** Most of them sound. */
export const patch: fc.Arbitrary<Bytes> = fc
  .tuple(
    fc.option(rarely(quoted, oddValue, 12), { freq: 3 }),
    fc.option(
      rarely(
        tag.map((one) => `"${one}"`),
        oneOf('null null null 1 [] true'),
        2,
      ),
    ),
    fc.option(fc.tuple(rarely(oneOf('"id" "owner" "name"'), oddKey, 1), rarely(id, oddValue)), {
      freq: 1,
    }),
  )
  .map(([name, its, other]) =>
    objectOf([
      ...(name === null ? [] : [['"name"', name] as const]),
      ...(its === null ? [] : [['"tag"', its] as const]),
      ...(other === null ? [] : [other]),
    ]),
  );

const access = oneOf('"read" "write"');
export const share: fc.Arbitrary<Bytes> = rarely(
  access.map((one) => `{"access":${one}}`),
  fc.oneof(
    oneOf(`{"access":"Read"} {"access":"all"} {"access":""} {"access":"read\\u0000"} {"access":null} {"access":1}
      {"access":["read"]} {"access":{}} {"acc\\u0065ss":"r\\u0065ad"} {"access":"read","access":"write"} {}
      {"access":"read","user":"bob"} {"access":"read","owner":"bob"} {"access":"write","__proto__":{}} "read" [] null`),
    access.map((one) => `{"access":${one},}`),
    access.map((one) => `{"access":${one}}`.padEnd(maxBodyBytes + 1)),
  ),
  6,
);

const soundScopes = fc
  .subarray(['plants:read', 'plants:write', 'shares:write'], { minLength: 1 })
  .chain((all) => fc.shuffledSubarray(all, { minLength: all.length }))
  .map((all) => JSON.stringify(all));
const oddScopes = oneOf(
  `[] ["plants:read","plants:read"] ["plants"] [1] ["plants:read",["plants:write"]] {} null "plants:read" [null]`,
);
const timeText = rarely(
  constantFrom(...times.future),
  constantFrom(...times.past, ...times.wrong),
  2,
);

/** Most of them sound, some not even JSON. */
export const newToken: fc.Arbitrary<Bytes> = rarely(
  fc
    .tuple(
      fc.option(rarely(soundScopes, oddScopes)),
      fc.option(tag),
      fc.option(timeText, { freq: 1 }),
    )
    .map(([wanted, label, time]) =>
      objectOf([
        ...(wanted === null ? [] : [['"scopes"', wanted] as const]),
        ...(label === null ? [] : [['"label"', `"${label}"`] as const]),
        ...(time === null ? [] : [['"expiresAt"', `"${time}"`] as const]),
      ]),
    ),
  oneOf(`{"scope":["plants:read"]} {"label":"a","label":"b"} {"expiresAt":null} {"expiresAt":4102444800} {"user":"bob"}
    {"scopes":["plants:read"],"__proto__":{}} [] null {"role":"manager"} {"id":1} {`),
  5,
);

export const oddBody: fc.Arbitrary<Bytes> = fc.oneof(
  fc
    .tuple(members, fc.array(anyMember, { minLength: 1, maxLength: 3 }))
    .map(([all, more]) => objectOf([...all, ...more])),
  fc.tuple(members, anyMember).map(([[, ...others], other]) => objectOf([other, ...others])),
  fc
    .tuple(constantFrom(' \r\n\t', '\xef\xbb\xbf', '[', '//x\n', '\x00'), plant)
    .map((all) => all.join('')),
  fc
    .tuple(plant, constantFrom(' \r\n\t', 'x', '}', '{}', ',', '\x00', '\xff', '/**/'))
    .map((all) => all.join('')),
  fc.tuple(plant, fc.nat(60)).map(([body, at]) => body.slice(0, at)),
  fc
    .tuple(plant, constantFrom(-1, 0, 1, 900, 30_000))
    .map(([body, more]) => body.padEnd(maxBodyBytes + more)),
  oneLine(`[]
    "name"
    null
    0
    [{"name":"a"}]
    {"name":"a"
    {'name':'a'}
    name=a
    {,}
    {}`),
  constantFrom(
    '',
    'GET /plants HTTP/1.1\r\nHost: x\r\n\r\n',
    '0\r\n\r\n',
    '{"name":"a"}\r\n\r\nGARBAGE',
  ),
);

function objectOf(all: readonly Member[]): Bytes {
  return `{${all.map(([key, value]) => `${key}:${value}`).join(',')}}`;
}
