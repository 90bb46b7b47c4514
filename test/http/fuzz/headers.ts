/**
 * Random headers: who is calling, what the body is, and what a proxy or an attacker adds.
 */
import * as fc from 'fast-check';
import { people } from './people.ts';
import type { Request } from './request.ts';
import { oneOf, rarely } from './values.ts';

const { constantFrom } = fc;

export type Headers = Request['headers'];

/** A header with one of these values, which have ` ~ ` between them. */
function each(name: string, texts: string, ...more: readonly string[]): fc.Arbitrary<Headers> {
  return constantFrom(...valuesIn(texts), ...more).map((value): Headers => [[name, ` ${value}`]]);
}

const valuesIn = (texts: string) => texts.split('~').map((value) => value.trim());

const bearer = (name: string): Headers => [['Authorization', ` Bearer <${name}>`]];
const names = people.map(({ name }) => name);

export const authorization: fc.Arbitrary<Headers> = fc.oneof(
  { weight: 24, arbitrary: constantFrom(...names).map(bearer) },
  { weight: 6, arbitrary: oneOf('reader writer sharer spare spare other').map(bearer) },
  {
    weight: 3,
    arbitrary: each(
      'authorization',
      `Bearer <expired> ~ Bearer <revoked> ~ Bearer <unknown> ~ bearer <alice> ~ BEARER  <alice> ~ Bearer ~ <alice> ~
      Basic <alice> ~ Bearer <alice> <alice> ~ Bearer <alice>, ~ Bearer <alice>x ~ Bearer "<alice>" ~ Bearer plant_ ~
      Token <alice> ~ Bearer <bob>, Bearer <bob> ~`,
      '\tBearer <alice> \t',
      'Bearer\t<alice>',
      'Bearer \xe9',
    ),
  },
  // One character of a token is another.
  {
    weight: 1,
    arbitrary: fc.tuple(constantFrom(...names), fc.nat(54)).map((all) => bearer(all.join('~'))),
  },
  { weight: 1, arbitrary: constantFrom([], [...bearer('alice'), ...bearer('bob')]) },
);

export function typeOf(...types: readonly string[]): fc.Arbitrary<Headers> {
  return constantFrom(...types).map((type): Headers => [['Content-Type', ` ${type}`]]);
}

export const oddType = fc.oneof(
  {
    weight: 4,
    arbitrary: each(
      'Content-Type',
      `Application/JSON; Charset=UTF-8 ~ application/json;charset="utf-8" ~ application/json; charset=utf8 ~
      application/json ; charset=utf-16 ~ application/json;charset="latin1" ~ application/json; charset=utf-8; charset=utf-16 ~
      application/json; q=";charset=utf-16" ~ application/json; ~ application/json; charset ~ application/json, text/plain ~
      application/jsonp ~ application/problem+json ~ application/merge-patch+json; charset=UTF-8 ~
      application/x-www-form-urlencoded ~ text/plain ~ */* ~ nonsense ~`,
    ),
  },
  fc
    .tuple(
      typeOf('application/json'),
      fc.oneof(
        each('Content-Encoding', 'gzip ~ identity ~ br, gzip ~ x'),
        typeOf('application/json', 'text/plain'),
      ),
    )
    .map((both) => both.flat()),
  constantFrom<Headers>([]),
);

/** In a header, the entity tag that the plant of the target has. */
export const presentTag = '{tag}';

const tags = rarely(
  constantFrom(
    ...valuesIn(
      '{tag} ~ {tag} ~ * ~ W/{tag} ~ "x", {tag} ~ "x",{tag} , W/"y" ~ "x" ~ "" ~ ,"a,b",,{tag},',
    ),
  ),
  constantFrom(
    ...valuesIn(
      'x ~ {tag} {tag} ~ w/{tag} ~ W/ {tag} ~ *, {tag} ~ "x ~ "a b" ~ \'{tag}\' ~ W/"x", W/* ~ , ~ ~ "\xe9" ~ "a\tb" ~ "a"b"',
    ),
  ),
  4,
);
export const condition: fc.Arbitrary<Headers> = fc
  .tuple(oneOf('If-Match If-Match if-none-match If-None-Match'), tags, fc.option(tags, { freq: 1 }))
  .map(([name, first, second]) => [
    [name, ` ${first}`],
    ...(second === null ? [] : [[name, ` ${second}`] as const]),
  ]);

const extras = {
  'X-Request-Id': '11111111-1111-1111-1111-111111111111',
  Accept: 'text/html',
  'Accept-Encoding': 'gzip',
  'If-Modified-Since': 'x',
  Range: 'bytes=0-1',
  Origin: 'https://evil.example',
  Cookie: 'a=b',
  Connection: 'close ~ keep-alive',
  Upgrade: 'h2c',
  'X-HTTP-Method-Override': 'DELETE',
  'X-Forwarded-For': '127.0.0.1',
  TE: 'trailers',
  Prefer: 'return=minimal',
  'X-Empty': '',
  Expect: '100-continue ~ 100-Continue ~ miracles ~ 100-continue, x ~',
  Host: 'y',
  'Content-Length': '0 ~ x ~ -1 ~ +1 ~ 0x1 ~ 1, 1',
  'Transfer-Encoding': 'chunked ~ gzip, chunked ~ identity ~ chunked, identity',
};
export const extra = fc.oneof(
  ...Object.entries(extras).map(([name, values]) => each(name, values)),
  constantFrom<Headers>(
    [['x', '\xe9\xff']],
    [['X-Big', 'a'.repeat(14_000)]],
    [['X-Bigger', 'a'.repeat(20_000)]],
    Array.from({ length: 2_100 }, () => ['a', ''] as const),
  ),
);

export const oddHost = rarely(
  each(
    'Host',
    'a b ~ x/y ~ x? ~ u@x ~ x:port ~ [::1]:80 ~ [::1 ~ x: ~ xn--pflnze-bua.example ~ a,b ~ x\\y ~ x%41 ~ x% ~',
  ),
  constantFrom<Headers>(
    [],
    [
      ['Host', ' a'],
      ['host', ' a'],
    ],
  ),
);
