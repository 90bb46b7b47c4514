/**
 * Random requests of several users in several stores, sent over a socket to the service and to a
 * plain model in memory, answer by answer.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { plantFields, type Plant, type PlantField } from '../src/plant.ts';
import type { Answer, TestApp } from './support/app.ts';

/** Two stores; in the first a manager and two members, in the second a member who has a namesake. */
const people = [
  { store: 'main', user: 'maria', role: 'manager' },
  { store: 'main', user: 'alice', role: 'member' },
  { store: 'main', user: 'bob', role: 'member' },
  { store: 'elsewhere', user: 'alice', role: 'member' },
] as const;
type Person = (typeof people)[number];

type Request =
  | {
      kind: 'create';
      id: number | undefined;
      name: string;
      tag: string | undefined;
      fields: Fields;
    }
  | { kind: 'find'; id: number; fields: Fields }
  | { kind: 'delete'; id: number }
  | {
      kind: 'list';
      limit: number | undefined;
      after: number | undefined;
      tag: string | undefined;
      fields: Fields;
    };
type Fields = readonly PlantField[] | undefined;
export type Step = { who: number } & Request;

// Few ids and tags, so that requests meet the same plants.
const id = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 31, 2 ** 53 - 1) },
);
const text = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
  .filter((one) => /\S/.test(one) && !/\p{Cc}/u.test(one) && one.isWellFormed());
const tag = fc.oneof(fc.constantFrom('', 'a', 'A', 'a b', 'é'), text);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const fields = maybe(fc.shuffledSubarray([...plantFields], { minLength: 1 }));
const who = fc.nat(people.length - 1);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      who,
      id: maybe(id),
      name: text,
      tag: maybe(tag),
      fields,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('find' as const), who, id, fields }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete' as const), who, id }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('list' as const),
      who,
      limit: maybe(fc.integer({ min: 1, max: 6 })),
      after: maybe(fc.oneof(fc.constant(0), id)),
      tag: maybe(tag),
      fields,
    }),
  },
);

export const steps = (count: number) => fc.array(step, { minLength: count, maxLength: count });

interface Expected {
  status: number;
  /** The body of a success; a refusal is compared by its status and its kind. */
  text?: string;
  problem?: string;
  location?: string;
  link?: string | null;
}

/** The documented behaviour in its simplest form. */
class Model {
  readonly #plants = new Map<string, Map<number, Plant & { owner: string }>>();
  readonly #lastIds = new Map<string, number>();

  answer(person: Person, request: Request): Expected {
    switch (request.kind) {
      case 'create':
        return this.#create(person, request);
      case 'find': {
        const plant = this.#reachable(person).find((one) => one.id === request.id);
        return plant ? { status: 200, text: json(plant, request.fields) } : notFound;
      }
      case 'delete': {
        const plant = this.#reachable(person).find((one) => one.id === request.id);
        if (plant === undefined) return notFound;
        this.#store(person).delete(plant.id);
        return { status: 204, text: '' };
      }
      case 'list':
        return this.#list(person, request);
    }
  }

  #create(person: Person, request: Request & { kind: 'create' }): Expected {
    const plants = this.#store(person);
    const lastId = this.#lastIds.get(person.store) ?? 0;
    const assigned = request.id ?? lastId + 1;
    if (!Number.isSafeInteger(assigned)) return { status: 409, problem: 'ids-exhausted' };
    if (plants.has(assigned)) return { status: 409, problem: 'id-taken' };
    const plant = { id: assigned, name: request.name, tag: request.tag ?? '', owner: person.user };
    plants.set(assigned, plant);
    this.#lastIds.set(person.store, Math.max(lastId, assigned));
    return { status: 201, text: json(plant, request.fields), location: `/plants/${assigned}` };
  }

  #list(person: Person, request: Request & { kind: 'list' }): Expected {
    const all = this.#reachable(person)
      .filter((plant) => plant.id > (request.after ?? 0))
      .filter((plant) => request.tag === undefined || plant.tag === request.tag)
      .toSorted((a, b) => a.id - b.id);
    const page = all.slice(0, request.limit);
    const { limit, tag: label, fields: asked } = request;
    let next = `/plants?limit=${limit}&after=${page.at(-1)?.id}`;
    if (label !== undefined) next += `&tag=${encodeURIComponent(label)}`;
    if (asked !== undefined) next += `&fields=${encodeURIComponent(asked.join())}`;
    return {
      status: 200,
      text: `[${page.map((plant) => json(plant, request.fields)).join()}]`,
      link: page.length < all.length ? `<${next}>; rel="next"` : null,
    };
  }

  #reachable({ store, user, role }: Person) {
    const plants = [...this.#store({ store }).values()];
    return plants.filter(({ owner }) => role === 'manager' || owner === user);
  }

  #store({ store }: { store: string }) {
    const plants = this.#plants.get(store) ?? new Map<number, Plant & { owner: string }>();
    this.#plants.set(store, plants);
    return plants;
  }
}

const notFound = { status: 404, problem: 'plant-not-found' };

function json(plant: Plant, wanted: Fields): string {
  const members = (wanted ?? ['name', 'tag']).map(
    (field) => `${JSON.stringify(field)}:${JSON.stringify(plant[field])}`,
  );
  return `{${members.join()}}`;
}

function queryOf(request: Request): string {
  const query = new URLSearchParams();
  if (request.kind === 'list') {
    const { limit, after, tag: label } = request;
    if (limit !== undefined) query.set('limit', String(limit));
    if (after !== undefined) query.set('after', String(after));
    if (label !== undefined) query.set('tag', label);
  }
  if ('fields' in request && request.fields) query.set('fields', request.fields.join());
  return query.toString();
}

let runs = 0;

/** Sends every step to the service, to stores of its own, and compares the answers with the model. */
export async function agree(app: TestApp, all: readonly Step[]): Promise<void> {
  const run = ++runs;
  const tokens = await Promise.all(
    people.map(({ user, role, store }) => app.token(user, { role, store: `${store} ${run}` })),
  );
  const model = new Model();
  for (const one of all) {
    const person = people[one.who];
    const token = tokens[one.who];
    assert.ok(person && token);
    const answer = await send(app, token, one);
    const expected = model.answer(person, one);
    assert.deepEqual(seen(answer, expected), expected, JSON.stringify(one));
  }
}

function send({ call }: TestApp, token: string, request: Request): Promise<Answer> {
  const query = queryOf(request);
  const search = query === '' ? '' : `?${query}`;
  switch (request.kind) {
    case 'create': {
      const { id: wanted, name, tag: label } = request;
      return call('POST', `/plants${search}`, { token, json: { name, id: wanted, tag: label } });
    }
    case 'find':
      return call('GET', `/plants/${request.id}${search}`, { token });
    case 'delete':
      return call('DELETE', `/plants/${request.id}`, { token });
    case 'list':
      return call('GET', `/plants${search}`, { token });
  }
}

/** Of an answer, what the model has an opinion on. */
function seen({ status, text: body, json: parsed, headers }: Answer, expected: Expected): Expected {
  const type = status < 400 ? undefined : (parsed as { type: string }).type;
  return {
    status,
    ...('text' in expected && { text: body }),
    ...('problem' in expected && { problem: type?.replace('/problems/', '') ?? '' }),
    ...('location' in expected && { location: headers.get('location') ?? '' }),
    ...('link' in expected && { link: headers.get('link') }),
  };
}
