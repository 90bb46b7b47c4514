/**
 * Random headers: who is calling, what the body is, and what a proxy or an attacker adds.
 */
import * as fc from 'fast-check';
import { people } from './people.ts';
import { oneLine, oneOf, rarely } from './pick.ts';
import type { Bytes } from './request.ts';

const { constantFrom } = fc;

export type Header = readonly [name: Bytes, value: Bytes];

const headerOf = (line: string): Header[] => {
  const at = line.indexOf(':');
  return [[line.slice(0, at), line.slice(at + 1)]];
};

const good = constantFrom(...people.map(({ name }) => `<${name}>`));
const scheme = rarely(constantFrom('Bearer'), constantFrom('bearer', 'BEARER', 'bEaReR'));
const oddCredentials = fc.oneof(
  oneLine(`Bearer <expired>
    Bearer <revoked>
    Bearer <unknown>
    Bearer  <alice>
    Bearer
    <alice>
    Basic <alice>
    Bearer <alice> <alice>
    Bearer <alice>,
    Bearer <alice>x
    Bearer "<alice>"
    Bearer plant_
    Token <alice>
    Bearer <bob>, Bearer <bob>`),
  constantFrom('', '\tBearer <alice> \t', 'Bearer\t<alice>', 'Bearer ', 'Bearer \xe9'),
);
/** One character of a token is another. */
const typo = fc.tuple(good, fc.nat(54)).map(([token, at]) => token.replace('>', `~${at}>`));

export const authorization: fc.Arbitrary<Header[]> = fc.oneof(
  {
    weight: 24,
    arbitrary: fc
      .tuple(scheme, good)
      .map((all): Header[] => [['Authorization', ` ${all.join(' ')}`]]),
  },
  {
    weight: 6,
    arbitrary: constantFrom('reader', 'writer', 'sharer', 'spare', 'spare', 'other').map((name) =>
      headerOf(`authorization:Bearer <${name}>`),
    ),
  },
  { weight: 2, arbitrary: oddCredentials.map((one): Header[] => [['Authorization', ` ${one}`]]) },
  { weight: 1, arbitrary: typo.map((one): Header[] => [['Authorization', ` Bearer ${one}`]]) },
  {
    weight: 1,
    arbitrary: constantFrom<Header[]>(
      [],
      ...['alice', 'bob'].map((other) => [
        ...headerOf('Authorization: Bearer <alice>'),
        ...headerOf(`AUTHORIZATION: Bearer <${other}>`),
      ]),
    ),
  },
);

export const json: Header[] = headerOf('Content-Type: application/json');
export const patchType = constantFrom(
  json,
  json,
  headerOf('Content-Type: application/merge-patch+json'),
  headerOf('Content-Type: application/merge-patch+json; charset=UTF-8'),
);
export const oddType: fc.Arbitrary<Header[]> = fc.oneof(
  oneLine(`Application/JSON; Charset=UTF-8
    application/json;charset="utf-8"
    application/json; charset=utf8
    application/json ; charset=utf-16
    application/json;charset="latin1"
    application/json; charset=utf-8; charset=utf-16
    application/json; profile="x"
    application/json; q=";charset=utf-16"
    application/json;
    application/json; charset
    application/json, text/plain
    application/jsonp
    application/problem+json
    application/merge-patch+json
    application/x-www-form-urlencoded
    multipart/form-data
    text/plain
    application/*
    */*
    nonsense`).map((value): Header[] => [['Content-Type', ` ${value}`]]),
  constantFrom('gzip', 'identity', 'br, gzip', 'x').map((coding): Header[] => [
    ...json,
    ['Content-Encoding', ` ${coding}`],
  ]),
  constantFrom<Header[]>(
    [],
    [['Content-Type', '']],
    [...json, ...json],
    [...json, ['content-type', ' text/plain']],
  ),
);

/** In a header, the entity tag that the plant of the target has. */
export const presentTag = '{tag}';

const tags = rarely(
  oneLine(`{tag}
    {tag}
    *
    W/{tag}
    "x", {tag}
    "x",{tag} , W/"y"
    "x"
    ""
    ,"a,b",,{tag},`),
  fc.oneof(
    oneLine(`x
      {tag} {tag}
      w/{tag}
      W/ {tag}
      *, {tag}
      "x
      "a b"
      '{tag}'
      W/"x", W/*
      ,`),
    constantFrom('', '"\xe9"', '"a\tb"', '"a"b"'),
  ),
  4,
);
export const condition: fc.Arbitrary<Header[]> = fc
  .tuple(oneOf('If-Match If-Match if-none-match If-None-Match'), tags, fc.option(tags, { freq: 1 }))
  .map(([name, first, second]) => [
    [name, ` ${first}`],
    ...(second === null ? [] : ([[name, ` ${second}`]] as const)),
  ]);

export const extra: fc.Arbitrary<Header[]> = fc.oneof(
  oneLine(`X-Request-Id: 11111111-1111-1111-1111-111111111111
    Accept: text/html
    Accept-Encoding: gzip
    If-None-Match: *
    If-Match: "x"
    If-Modified-Since: x
    Range: bytes=0-1
    Origin: https://evil.example
    Cookie: a=b
    Connection: close
    Connection: keep-alive
    Upgrade: h2c
    X-HTTP-Method-Override: DELETE
    X-Forwarded-For: 127.0.0.1
    Forwarded: for=x
    TE: trailers
    Via: 1.1 x
    Prefer: return=minimal
    X-Empty:
    Expect: 100-continue
    Expect: 100-Continue
    Expect: miracles
    Expect: 100-continue, x
    Expect:
    Host: y
    Content-Length: 0
    Content-Length: x
    Content-Length: -1
    Content-Length: +1
    Content-Length: 0x1
    Content-Length: 1, 1
    Transfer-Encoding: chunked
    Transfer-Encoding: gzip, chunked
    Transfer-Encoding: identity
    Transfer-Encoding: chunked, identity`).map(headerOf),
  constantFrom<Header[]>(
    [['x', '\xe9\xff']],
    [['X-Big', 'a'.repeat(14_000)]],
    [['X-Bigger', 'a'.repeat(20_000)]],
    Array.from({ length: 2_100 }, (): Header => ['a', '']),
  ),
);

export const oddHost: fc.Arbitrary<Header[]> = fc.oneof(
  oneLine(`a b
    x/y
    x?
    u@x
    x:port
    [::1]:80
    [::1
    x:
    xn--pflnze-bua.example
    a,b
    x\\y
    x%41
    x%`).map((value): Header[] => [['Host', ` ${value}`]]),
  constantFrom<Header[]>(
    [],
    [['Host', '']],
    [
      ['Host', ' a'],
      ['host', ' a'],
    ],
  ),
);
