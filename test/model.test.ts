/**
 * Random requests of several users in several stores, sent to the service and to a plain model, answer by answer.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import * as fc from 'fast-check';
import type { Role } from '../src/access/access.ts';
import { Model, type BinEntry, type Entry, type Expected } from './model.ts';
import { accessSteps, people, scopesOfTokens, send, steps, type Step } from './requests.ts';
import { startApp, type Answer, type TestApp } from './support/app.ts';
import { rounds, sizeOf } from './support/rounds.ts';
import { it, storageOf, type StorageName } from './support/storages.ts';

const requests = sizeOf({ usual: 40, long: 200 });

it('returns the response of a plain in-memory model for every random request', (t) =>
  agrees(t, steps(requests), { SQLite: 10, PostgreSQL: 4 }));

it('decides for every user, plant and operation as the model does', (t) =>
  agrees(t, accessSteps(60), { SQLite: 2, PostgreSQL: 1 }));

async function agrees(
  t: TestContext,
  arbitrary: fc.Arbitrary<Step[]>,
  runsOf: Record<StorageName, number>,
) {
  const app = await startApp(t);
  const processes = [app, await startApp(t, { open: () => app.database.open() })] as const;
  const property = fc.asyncProperty(arbitrary, (all) => agree(processes, all));
  const numRuns = runsOf[storageOf(t)];
  // So that a failure is shown before the test times out, although its steps could become fewer.
  const bounded = { interruptAfterTimeLimit: 50_000, markInterruptAsFailure: true };
  await rounds(t, (_, seed) => fc.assert(property, { seed, numRuns, ...bounded }));
}

let stores = 0;

/**
 * Sends the steps to two processes in turn, in stores of their own, and compares the answers with the model. What one
 * process changes, the other one must apply at once.
 */
async function agree(processes: readonly [TestApp, TestApp], all: readonly Step[]): Promise<void> {
  const run = ++stores;
  const tokens = new Map<string, string>();
  const model = new Model();
  const etags = new EntityTags();
  for (const [at, one] of all.entries()) {
    const app = processes[at % 2 === 0 ? 0 : 1];
    const person = people[one.who];
    const granted = scopesOfTokens[one.token];
    assert.ok(person && granted);
    const { user, role, store } = person;
    const newToken = (as: Role) =>
      app.token(user, { role: as, store: `${store} ${run}`, scopes: granted });
    if (one.kind === 'role') {
      await newToken(one.role);
      model.roles.set(person, one.role);
      continue;
    }
    const key = `${one.who} ${one.token}`;
    const token = tokens.get(key) ?? (await newToken(model.roles.get(person) ?? role));
    tokens.set(key, token);
    const state = 'id' in one && one.id !== undefined ? model.stateOf(person, one.id) : undefined;
    const answer = await send(app, token, one, etags.of(store, state));
    const expected = model.answer(person, granted, one, answer.headers.get('location'));
    assert.deepEqual(seen(answer, expected), expected, JSON.stringify(one));
    etags.compare(store, expected.state, answer.headers.get('etag'));
  }
}

/** Each state of a plant has one entity tag, and no two of them have the same. */
class EntityTags {
  readonly #tags = new Map<string, string>();
  readonly #states = new Map<string, string>();

  /** The entity tag of a state of which there was a response. */
  of(store: string, state: string | undefined): string {
    return this.#tags.get(`${store} ${state}`) ?? '"never"';
  }

  compare(store: string, state: string | undefined, etag: string | null): void {
    if (state === undefined) return assert.equal(etag, null);
    assert.ok(etag);
    const known = `${store} ${state}`;
    assert.equal(this.#tags.get(known) ?? etag, etag, known);
    // Users of two stores can have the same number.
    const inStore = `${store} ${etag}`;
    assert.equal(this.#states.get(inStore) ?? state, state, etag);
    this.#tags.set(known, etag);
    this.#states.set(inStore, state);
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
    ...('state' in expected && { state: expected.state }), // EntityTags compares it
    ...('history' in expected && { history: withoutTimes<Entry>(parsed, 'at') }),
    ...('bin' in expected && { bin: withoutTimes<BinEntry>(parsed, 'deletedAt') }),
    ...('link' in expected && { link: headers.get('link') }),
  };
}

function withoutTimes<Shown>(entries: unknown, time: 'at' | 'deletedAt'): Shown[] {
  return (entries as Record<string, unknown>[]).map(({ [time]: at, ...entry }) => {
    assert.ok(Math.abs(Date.parse(String(at)) - Date.now()) < 600_000, String(at));
    return entry as Shown; // it is compared with one
  });
}
