/**
 * Random requests of several users in two stores, and how they are sent.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import {
  defaultScopes,
  roles,
  scopes,
  shareAccesses,
  type Role,
  type Scope,
} from '../src/access/access.ts';
import { fold } from '../src/plants/folding.ts';
import { plantFields } from '../src/plants/fields.ts';
import type { Answer, TestApp } from './support/app.ts';

export interface Person {
  readonly store: string;
  readonly user: string;
  /** At first. */
  readonly role: Role;
}

/**
 * In the first store a manager and four members, in the second a member who has a namesake. UTF-16 orders
 * the names of two of them differently than UTF-8. Each user is created by their first request.
 */
export const people: readonly Person[] = [
  { store: 'main', user: 'maria', role: 'manager' },
  { store: 'main', user: 'alice', role: 'member' },
  { store: 'main', user: 'bob', role: 'member' },
  { store: 'main', user: '\ufb00', role: 'member' },
  { store: 'main', user: '𝒳', role: 'member' },
  { store: 'elsewhere', user: 'alice', role: 'member' },
];

/** What the tokens of each person grant. The first ones are used most. */
export const scopesOfTokens: readonly (readonly Scope[])[] = [
  scopes,
  defaultScopes,
  ['shares:write'],
  ['plants:read'],
];

// Few ids and tags, so that requests meet the same plants.
const id = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 31, 2 ** 53 - 1) },
);
const text = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
  .filter((one) => /\S/.test(one) && !/\p{Cc}/u.test(one) && one.isWellFormed());
const tag = fc.oneof(fc.constantFrom('', 'a', 'A', 'a b', 'é'), text);
const searched = fc
  .oneof(fc.constantFrom('a', 'É', ' '), text)
  .filter((one) => fold(one).trim() !== '');
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const fields = maybe(fc.shuffledSubarray([...plantFields], { minLength: 1 }));
/** The entity tag in a header: that of the plant, that of another state, or any. */
const condition = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom('present', 'present', 'weak', 'other', 'any' as const) },
);
/** `If-Match` and `If-None-Match`. */
const conditions = { match: condition, noneMatch: condition };
const page = { limit: maybe(fc.integer({ min: 1, max: 4 })) };
const user = fc.constantFrom(...new Set(people.map((person) => person.user)), 'nobody');

function weighted<K extends string, Rest>(
  weight: number,
  kind: K,
  rest: { [Key in keyof Rest]: fc.Arbitrary<Rest[Key]> },
) {
  return { weight, arbitrary: fc.record<Rest>(rest).map((made) => ({ ...made, kind })) };
}

const create = weighted(5, 'create', { id: maybe(id), name: text, tag: maybe(tag), fields });
const share = weighted(4, 'share', { user, access: fc.constantFrom(...shareAccesses) });
const unshare = weighted(2, 'unshare', { user });
/** An operator changes the role of the user who is next. */
const role = weighted(1, 'role', { role: fc.constantFrom('member', ...roles) });
const anyRequest = fc.oneof(
  create,
  weighted(2, 'find', { id, fields, ...conditions }),
  weighted(4, 'update', {
    id,
    name: maybe(text),
    tag: maybe(fc.option(tag)),
    fields,
    ...conditions,
  }),
  weighted(4, 'delete', { id, ...conditions }),
  weighted(2, 'restore', { id, fields }),
  weighted(2, 'history', { id, ...page }),
  weighted(2, 'bin', page),
  weighted(4, 'list', {
    ...page,
    after: maybe(fc.oneof(fc.constant(0), id)),
    tag: maybe(tag),
    q: maybe(searched),
    fields,
  }),
  share,
  unshare,
  weighted(1, 'shares', {}),
  role,
);
export type Request = typeof anyRequest extends fc.Arbitrary<infer R> ? R : never;
export type Kind = Request['kind'];
export type Of<K extends Kind> = Request & { kind: K };

/** `who` is an index of people, `token` one of scopesOfTokens. */
export type Step = { who: number; token: number } & Request;

const who = fc.nat(people.length - 1);
const token = fc.oneof(
  { weight: 8, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.nat(scopesOfTokens.length - 1) },
);
const stepsOf = (request: fc.Arbitrary<Request>, tokens: fc.Arbitrary<number>, count: number) => {
  const step = fc.tuple(request, who, tokens);
  return fc
    .array(step, { minLength: count, maxLength: count })
    .map((all) => all.map(([made, by, its]): Step => ({ ...made, who: by, token: its })));
};

const unset = { tag: undefined, fields: undefined, match: undefined, noneMatch: undefined };
const every = { ...unset, limit: undefined, after: undefined, q: undefined, token: 0 };

/** What everybody sees. */
const views = people.flatMap((_, at): Step[] => [
  { ...every, kind: 'list', who: at },
  { ...every, kind: 'bin', who: at, limit: 2 },
  { ...every, kind: 'shares', who: at },
]);

export const steps = (count: number): fc.Arbitrary<Step[]> =>
  stepsOf(anyRequest, token, count).map((made) => [...made, ...views]);

/**
 * Everybody has a plant, random requests change who can access them, and then everybody tries everything. In the end,
 * the manager deletes all plants in reach.
 */
export const accessSteps = (changes: number): fc.Arbitrary<Step[]> => {
  const ids = people.map((_, at) => at + 1);
  const creates = people.map((_, at): Step => {
    return { ...every, kind: 'create', who: at, id: at + 1, name: 'new' };
  });
  const tries = people.flatMap((_, at): Step[] => [
    { ...every, kind: 'list', who: at },
    ...ids.flatMap((one) =>
      (['find', 'history', 'update', 'delete', 'restore'] as const).map((kind): Step => {
        return { ...every, kind, who: at, id: one, name: `of ${at}` };
      }),
    ),
  ]);
  const change = fc.oneof(share, unshare, role);
  // Not in the order of their ids.
  const deletes = [...ids.slice(2), ...ids.slice(0, 2)].map((one): Step => {
    return { ...every, kind: 'delete', who: 0, id: one };
  });
  const all = stepsOf(change, fc.constant(0), changes);
  return all.map((made) => [...creates, ...made, ...tries, ...deletes, ...views]);
};

export function send(
  { call }: TestApp,
  bearer: string,
  request: Exclude<Request, Of<'role'>>,
  etag: string,
): Promise<Answer> {
  const to = (method: string, path: string, query: object = {}, json?: object) => {
    const options = { token: bearer, headers: headersOf(request, etag) };
    return call(method, targetOf(path, query), { ...options, ...(json !== undefined && { json }) });
  };
  switch (request.kind) {
    case 'create': {
      const { id: wanted, name, tag: label, fields: asked } = request;
      return to('POST', '/plants', { fields: asked }, { id: wanted, name, tag: label });
    }
    case 'find':
      return to('GET', `/plants/${request.id}`, { fields: request.fields });
    case 'update': {
      const { name, tag: label, fields: asked } = request;
      return to('PATCH', `/plants/${request.id}`, { fields: asked }, { name, tag: label });
    }
    case 'delete':
      return to('DELETE', `/plants/${request.id}`);
    case 'restore':
      return to('POST', `/plants/${request.id}/restore`, { fields: request.fields });
    case 'history':
      return to('GET', `/plants/${request.id}/history`, { limit: request.limit });
    case 'bin':
      return wholeBin(to, request.limit);
    case 'list': {
      const { limit, after, tag: label, q, fields: asked } = request;
      return to('GET', '/plants', { limit, after, tag: label, q, fields: asked });
    }
    case 'share': {
      const { access } = request;
      return to('PUT', `/shares/${encodeURIComponent(request.user)}`, {}, { access });
    }
    case 'unshare':
      return to('DELETE', `/shares/${encodeURIComponent(request.user)}`);
    case 'shares':
      return to('GET', '/shares');
  }
}

function targetOf(path: string, query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length === 0 ? path : `${path}?${search.toString()}`;
}

function headersOf(request: Request, etag: string): Record<string, string> {
  if (!('match' in request)) return {};
  const { match, noneMatch } = request;
  const values = { present: etag, weak: `W/${etag}`, other: '"other"', any: '*' };
  return {
    ...(match && { 'if-match': values[match] }),
    ...(noneMatch && { 'if-none-match': values[noneMatch] }),
  };
}

/** The answer to the last page, with the plants of all of them. Each page but the last one is full. */
async function wholeBin(
  to: (method: string, path: string, query?: object) => Promise<Answer>,
  limit: number | undefined,
): Promise<Answer> {
  const plants: unknown[] = [];
  for (let answer = await to('GET', '/bin', { limit }); ;) {
    if (answer.status !== 200) return answer;
    const shown = answer.json as unknown[];
    plants.push(...shown);
    const [, next] = /^<(.*)>; rel="next"$/.exec(answer.headers.get('link') ?? '') ?? [];
    if (next === undefined) {
      assert.ok(shown.length <= (limit ?? Infinity));
      return { ...answer, json: plants };
    }
    assert.equal(shown.length, limit);
    answer = await to('GET', next);
  }
}
