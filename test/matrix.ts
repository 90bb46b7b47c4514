/**
 * Random users, roles, shares and plants, and who can list, get and delete each plant: according to the service, to
 * `plant-store access`, and to a plain model.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import {
  decideForToken,
  decideForUser,
  defaultScopes,
  operations,
  roles,
  shareAccesses,
  type Caller,
  type Operation,
  type Role,
} from '../src/access/access.ts';
import { isProblem } from '../src/problem.ts';
import type { Storage } from '../src/storage.ts';
import { addToken, startApp, type TestApp } from './support/app.ts';
import { runOk } from './support/command.ts';
import { seededRandom } from './support/random.ts';
import { identify } from './support/tokens.ts';

export interface World {
  users: number;
  plants: number;
  /** How often the shares change. After each change, every user asks about every plant. */
  states: number;
}

interface Person {
  name: string;
  store: 'main' | 'elsewhere';
  role: Role;
  token: string;
}

/** Who can do what, by the plainest rules. */
class Model {
  readonly people: Person[];
  /** By the id of the plant. */
  readonly owners = new Map<number, Person>();
  readonly shares = new Map<string, 'read' | 'write'>();

  constructor(people: Person[]) {
    this.people = people;
  }

  can(person: Person, operation: Operation, owner: Person): boolean {
    if (person.store !== 'main') return false;
    if (person === owner || person.role === 'manager') return true;
    const access = this.shares.get(keyOf(owner, person));
    return access === 'write' || (access === 'read' && operation === 'read');
  }
}

const keyOf = (owner: Person, person: Person) => `${owner.name} ${person.name}`;

/** Answers through one process. */
interface Service {
  list(person: Person): Promise<Set<number>>;
  get(person: Person, id: number): Promise<boolean>;
  delete(person: Person, id: number): Promise<boolean>;
}

/** Asks about each state of each world, and returns the number of questions. */
export async function agreeOnAccess(
  t: TestContext,
  worlds: readonly World[],
  { seed, explained }: { seed: number; explained: number },
): Promise<number> {
  const next = seededRandom(seed);
  const random = (bound: number) => Math.floor(next() * bound);
  let questions = 0;
  for (const { users, plants, states } of worlds) {
    const app = await startApp(t);
    await using other = await app.database.open();
    const storages = [app.storage, other] as const;
    const model = await populate(app.storage, users, plants);
    for (let state = 0; state < states; state++) {
      // What one process changes, the other one must apply at once.
      const [writing, reading] = state % 2 === 0 ? [other, app.storage] : storages;
      await changeRole(model, writing, random);
      // From here on, the grants of all users are cached.
      for (const person of model.people) await callerOf(reading, person);
      const kind = kindsOfChanges[state % kindsOfChanges.length] ?? 'all';
      await changeShares(model, kind, writing, random);
      const differences: string[] = [];
      const compare = (question: string, actual: boolean, expected: boolean) => {
        if (actual !== expected) differences.push(`${question}: ${actual}`);
        questions++;
      };
      for (const [at, person] of model.people.entries()) {
        const isServed = reading === app.storage && at === state % model.people.length;
        const service = isServed ? overHttp(app) : inProcess(reading, random);
        await ask(model, person, service, compare);
        await compareDecisions(model, person, reading);
        await askToDelete(model, person, service, compare, random);
        await replant(model, plants, writing, random);
      }
      const where = `state ${state} (${kind}) of ${users} users, seed ${seed}`;
      assert.deepEqual(differences, [], where);
    }
    for (let asked = 0; asked < explained; asked++) await explain(model, app, random);
  }
  return questions;
}

type Compare = (question: string, actual: boolean, expected: boolean) => void;
type Random = (bound: number) => number;

/** Creates members of the store, and a user of another store who has the name of the first. */
async function populate(storage: Storage, users: number, plants: number): Promise<Model> {
  const people: Person[] = [];
  for (let at = 0; at < users; at++) {
    const name = `user ${at}`;
    people.push({ name, store: 'main', role: 'member', token: await addToken(storage, name) });
  }
  const store = 'elsewhere';
  const token = await addToken(storage, 'user 0', { store });
  people.push({ name: 'user 0', store, role: 'member', token });
  const model = new Model(people);
  const creates: Promise<unknown>[] = [];
  for (let id = 1; id <= plants; id++) {
    const owner = people[(id * id) % users] ?? assert.fail();
    model.owners.set(id, owner);
    creates.push(
      storage.plants.create(await callerOf(storage, owner), { id, name: `plant ${id}` }),
    );
  }
  await Promise.all(creates);
  return model;
}

/** Gives a random member a random role. */
async function changeRole({ people }: Model, storage: Storage, random: Random): Promise<void> {
  const promoted = people[random(people.length - 1)] ?? assert.fail(); // the last one is of another store
  promoted.role = roles[random(4) === 0 ? 1 : 0];
  promoted.token = await addToken(storage, promoted.name, { role: promoted.role });
}

const kindsOfChanges = ['all', 'add', 'end', 'set'] as const;

/**
 * Changes shares of a few receivers, of whom some receive almost all or almost none. Changes of one kind alone must
 * take effect too.
 */
async function changeShares(
  { people, shares }: Model,
  kind: (typeof kindsOfChanges)[number],
  storage: Storage,
  random: Random,
): Promise<void> {
  const members = people.filter(({ store }) => store === 'main');
  const { store } = await callerOf(storage, members[0] ?? assert.fail());
  for (let turn = 0; turn < 6; turn++) {
    const receiver = members[random(members.length)] ?? assert.fail();
    const percent = [5, 50, 95][random(3)] ?? 0;
    await Promise.all(
      members.map(async (owner) => {
        const key = keyOf(owner, receiver);
        const ends = { owner: owner.name, user: receiver.name };
        const existing = shares.get(key);
        const isWanted = random(100) < percent;
        const needed = !isWanted ? 'end' : existing === undefined ? 'add' : 'set';
        if (owner === receiver || (kind !== 'all' && kind !== needed)) return;
        if (isWanted) {
          const access = shareAccesses[random(2)] ?? 'read';
          const isNew = await storage.shares.set(store, { ...ends, access }, Date.now());
          assert.equal(isNew, existing === undefined);
          shares.set(key, access);
        } else {
          assert.equal(await storage.shares.end(store, [ends]), shares.delete(key));
        }
      }),
    );
  }
}

async function ask(
  model: Model,
  person: Person,
  service: Service,
  compare: Compare,
): Promise<void> {
  const listed = await service.list(person);
  await Promise.all(
    [...model.owners].map(async ([id, owner]) => {
      const expected = model.can(person, 'read', owner);
      const question = `${person.store} ${person.name} ${id}`;
      compare(`${question} is listed`, listed.has(id), expected);
      compare(`${question} is found`, await service.get(person, id), expected);
    }),
  );
}

/** Tries to delete all plants. Those that are gone have no owner afterwards. */
async function askToDelete(
  model: Model,
  person: Person,
  service: Service,
  compare: Compare,
  random: Random,
): Promise<void> {
  // Not every plant that can be deleted: they are planted again one by one.
  const isSpared = (owner: Person) => model.can(person, 'write', owner) && random(4) !== 0;
  await Promise.all(
    [...model.owners].map(async ([id, owner]) => {
      if (isSpared(owner)) return;
      const expected = model.can(person, 'write', owner);
      const isDeleted = await service.delete(person, id);
      compare(`${person.store} ${person.name} ${id} is deleted`, isDeleted, expected);
      if (isDeleted) model.owners.delete(id);
    }),
  );
}

/** Others create the plants that are gone. */
async function replant(
  model: Model,
  plants: number,
  storage: Storage,
  random: Random,
): Promise<void> {
  const creates: Promise<unknown>[] = [];
  for (let id = 1; id <= plants; id++) {
    if (model.owners.has(id)) continue;
    const owner = model.people[random(model.people.length - 1)] ?? assert.fail();
    model.owners.set(id, owner);
    creates.push(
      storage.plants.create(await callerOf(storage, owner), { id, name: `plant ${id}` }),
    );
  }
  await Promise.all(creates);
}

const nowMs = 1_000;
const forever = { expiresAtMs: undefined, revokedAtMs: undefined };
/** With all scopes, with few, and ended. */
const tokens: readonly Parameters<typeof decideForToken>[0][] = [
  { scopes: defaultScopes, ...forever },
  { scopes: ['plants:read'], ...forever },
  { scopes: ['plants:write', 'shares:write'], ...forever, expiresAtMs: nowMs + 1 },
  { scopes: [], ...forever },
  { scopes: defaultScopes, ...forever, expiresAtMs: nowMs },
  { scopes: defaultScopes, ...forever, revokedAtMs: 1 },
];

/** `plant-store access` decides with the same functions from the same facts. */
async function compareDecisions(model: Model, person: Person, storage: Storage): Promise<void> {
  const { store } = await callerOf(storage, person);
  const { received } = await storage.shares.of(store, person.name);
  const accesses = new Map(received.map((share) => [share.owner, share.access]));
  const names = await Promise.all(
    model.owners.keys().map((id) => storage.plants.findOwner(store, id)),
  );
  for (const [at, [id, owner]] of [...model.owners].entries()) {
    const name = names[at];
    assert.equal(name, person.store === 'main' ? owner.name : undefined);
    for (const operation of operations) {
      const share = accesses.get(name ?? '');
      const question = { user: person.name, role: person.role, owner: name, share };
      const decision = decideForUser(question, operation);
      const expected = model.can(person, operation, owner);
      assert.equal(decision.allowed, expected, `${person.name} ${id}`);
      for (const { scopes, ...times } of tokens) {
        const { allowed } = decideForToken({ scopes, ...times }, operation, decision, nowMs);
        const isEnded = times.expiresAtMs === nowMs || times.revokedAtMs !== undefined;
        assert.equal(allowed, expected && !isEnded && scopes.includes(`plants:${operation}`));
      }
    }
  }
}

type Explained = Record<Operation, { allowed: boolean }>;

/** Asks the command about one user and one plant. */
async function explain(model: Model, app: TestApp, random: Random): Promise<void> {
  const person = model.people[random(model.people.length)] ?? assert.fail();
  const [id, owner] = [...model.owners][random(model.owners.size)] ?? assert.fail();
  const args = ['access', person.name, String(id), '--store', person.store, '--json'];
  const printed = await runOk([...args, '--database', app.database.url]);
  const { tokens: ofPerson, ...ofUser }: Explained & { tokens: Explained[] } = JSON.parse(printed);
  assert.ok(ofPerson.length > 0);
  for (const operation of operations) {
    const expected = model.can(person, operation, owner);
    for (const explained of [ofUser, ...ofPerson]) {
      assert.equal(explained[operation].allowed, expected, printed);
    }
  }
}

async function callerOf(storage: Storage, { token }: Person): Promise<Caller> {
  const grant = await identify(storage, token);
  assert.ok(grant);
  return grant.caller;
}

function inProcess(storage: Storage, random: Random): Service {
  return {
    async list(person) {
      const caller = await callerOf(storage, person);
      const limit = [3, 20, 100, 1_000][random(4)] ?? 1;
      const ids = new Set<number>();
      for (let after: number | undefined = 0; after !== undefined;) {
        const page = await storage.plants.list(caller, { after, limit, fields: ['id'] });
        const plants: { id: number }[] = JSON.parse(`[${page.json}]`);
        for (const { id } of plants) ids.add(id);
        after = page.next;
      }
      return ids;
    },
    async get(person, id) {
      return (await storage.plants.find(await callerOf(storage, person), id)) !== undefined;
    },
    async delete(person, id) {
      const caller = await callerOf(storage, person);
      return storage.plants.delete(caller, id).catch((error: unknown) => {
        if (isProblem(error, 'plant-read-only')) return false;
        throw error;
      });
    },
  };
}

function overHttp({ call }: TestApp): Service {
  const isDone = async (method: string, id: number, { token }: Person) => {
    const { status, text } = await call(method, `/plants/${id}`, { token });
    const success = method === 'GET' ? 200 : 204;
    assert.ok(status === success || status === 404 || /plant-read-only/.test(text), text);
    return status === success;
  };
  return {
    async list({ token }) {
      const { json } = await call('GET', '/plants?fields=id', { token });
      return new Set((json as { id: number }[]).map(({ id }) => id));
    },
    get: (person, id) => isDone('GET', id, person),
    delete: (person, id) => isDone('DELETE', id, person),
  };
}
