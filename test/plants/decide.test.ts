/**
 * Random changes to a small store: the rules (src/plants/decide.ts) and a simple model of them agree on every outcome and
 * effect, one by one and in groups whose facts were read ahead (src/postgres/writer/group-facts.ts).
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { reaches, type ChangeReach, type Identified, type Reach } from '../../src/access/access.ts';
import type { Change } from '../../src/plants/changes.ts';
import { entityTag, type Condition } from '../../src/plants/entity-tag.ts';
import {
  decide,
  type DeletionInLog,
  type Effect,
  type Facts,
  type Rules,
} from '../../src/plants/decide.ts';
import { keepKeysMs } from '../../src/plants/idempotency.ts';
import { maxId } from '../../src/plants/ids.ts';
import type { OwnedPlant, StoredPlant } from '../../src/plants/plant-storage.ts';
import { GroupFacts, keyOf } from '../../src/postgres/writer/group-facts.ts';
import { Problem, tokenEnded } from '../../src/problem.ts';
import { seededRandom } from '../support/random.ts';
import { rounds, sizeOf } from '../support/rounds.ts';

const steps = sizeOf({ usual: 100_000, long: 10_000_000 });
const stepsPerStore = 250;
const maxGroup = 6;
const users = [1, 2, 3];

it(`decides ${steps} random changes as the model does`, (t) =>
  rounds(t, async (inner, seed) => decideChanges(inner, seed)));

function decideChanges(t: TestContext, seed: number): void {
  const counts = new Map<string, number>();
  for (let store = 0; store * stepsPerStore < steps; store++) {
    const random = seededRandom(seed * steps + store);
    const run = new Run((bound) => Math.floor(random() * bound));
    for (let step = 0; step < stepsPerStore;) step += run.takeGroup(counts);
  }
  t.diagnostic(JSON.stringify(Object.fromEntries(counts)));
  const expected = ['create', 'replay', 'update', 'delete', 'restore', ...Object.keys(refusals)];
  for (const each of expected) assert.ok((counts.get(each) ?? 0) > steps / 1_000, each);
}

/** Details that tell apart refusals of one kind. */
const refusals = {
  'id-taken create': /To create one, choose another id/,
  'id-taken restore': /It was restored before/,
  'quota-exceeded user': /^A user of this service/,
  'quota-exceeded store': /^A store of this service/,
  'precondition-failed': /./,
  'plant-read-only': /./,
  'idempotency-key-reused': /./,
  'invalid-token': /./,
};

/** What a change has resolved to, or the name of its refusal. */
type Outcome = { result: unknown; effect?: Effect | undefined } | string;

function outcomeOf(change: Change, facts: Facts, rules: Rules): Outcome {
  try {
    return decide(change, facts, rules);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { kind, detail } = error;
    const found = Object.entries(refusals).find(
      ([name, wanted]) => name.startsWith(kind) && wanted.test(detail),
    );
    return found?.[0] ?? assert.fail(error);
  }
}

interface StoredKey {
  user: number;
  key: string;
  fingerprint: string;
  plant: number;
  atMs: number;
}

/** The rules as the contract tells them, on a store that is read as a whole. It draws the smallest free id. */
class Model implements Facts {
  readonly rules: Rules;
  lastId: number;
  position = 10;
  plants = new Map<number, StoredPlant>();
  /** The bin would show those with a plant. */
  readonly deletions = new Map<number, DeletionInLog>();
  keys: StoredKey[] = [];
  nowMs = 0;
  readonly reach = new Map<number, ChangeReach>(users.map((user) => [user, [[user], [user]]]));
  readonly revoked = new Set<number>();
  /** The users whose callers were identified before their grants changed. */
  readonly outdated = new Set<number>();

  constructor(rules: Rules, lastId: number) {
    this.rules = rules;
    this.lastId = lastId;
  }

  reachNow([, , user]: Identified): ChangeReach | undefined {
    if (this.revoked.has(user)) throw tokenEnded('revoked');
    return this.outdated.has(user) ? this.reach.get(user) : undefined;
  }

  plant(id: number): StoredPlant | undefined {
    return this.plants.get(id);
  }

  deletion(id: number): DeletionInLog | undefined {
    return this.deletions.get(id);
  }

  key(user: number, key: string): StoredKey | undefined {
    return this.keys.find((each) => each.user === user && each.key === key);
  }

  count(owner: number | undefined): number {
    if (owner === undefined) return this.plants.size;
    return this.plants.values().reduce((sum, plant) => sum + Number(plant.owner === owner), 0);
  }

  randomFreeId(): number {
    let id = 1;
    while (this.plants.has(id)) id++;
    return id;
  }

  setTime(nowMs: number): void {
    this.nowMs = nowMs;
    this.keys = this.keys.filter(({ atMs }) => atMs >= nowMs - keepKeysMs);
  }

  /** Carries out the change. */
  apply(change: Change): Outcome {
    const user = change.by?.[2] ?? 0;
    if (this.revoked.has(user)) return 'invalid-token';
    const accessTo = (plant: OwnedPlant | undefined) => {
      const [read, write] = this.reach.get(user) ?? [[], []];
      if (plant === undefined) return 'none';
      if (reaches(write, plant.owner)) return 'write';
      return reaches(read, plant.owner) ? 'read' : 'none';
    };
    if (change.kind === 'create') return this.#create(change);
    const { kind, id } = change;
    const present = this.plants.get(id);
    if (kind === 'restore') {
      const lost = this.deletions.get(id)?.plant;
      const access = accessTo(present ?? lost);
      if (access === 'read') return 'plant-read-only';
      if (access === 'write' && present !== undefined) return 'id-taken restore';
      if (access === 'none' || lost === undefined) return { result: undefined };
      return this.#full(lost.owner) ?? this.#set(change, id, lost);
    }
    if (accessTo(present) === 'read') return 'plant-read-only';
    if (present === undefined || accessTo(present) === 'none') return { result: undefined };
    const { match, noneMatch } = change.condition ?? {};
    const tag = entityTag(present);
    const isMatched = match === undefined || match === 'any' || match.includes(tag);
    if (!isMatched || noneMatch === 'any' || noneMatch?.includes(tag) === true)
      return 'precondition-failed';
    if (kind === 'delete') return this.#set(change, id, undefined);
    const updated = ownedOf(present);
    if (change.name !== undefined) updated.name = change.name;
    if (change.tag !== undefined) updated.tag = change.tag;
    if (entityTag(updated) === tag) return { result: { ...updated, position: this.position } };
    return this.#set(change, id, updated);
  }

  #create(change: Change & { kind: 'create' }): Outcome {
    const { owner, name, tag, key: [key, fingerprint] = [] } = change;
    const earlier = this.keys.find((each) => each.user === owner && each.key === key);
    if (earlier !== undefined) {
      const isSame = earlier.fingerprint === fingerprint;
      const result = { id: earlier.plant, position: this.position, isReplay: true };
      return isSame ? { result } : 'idempotency-key-reused';
    }
    const next = this.lastId === maxId ? this.randomFreeId() : this.lastId + 1;
    const id = change.id ?? next;
    if (this.plants.has(id)) return 'id-taken create';
    const full = this.#full(owner);
    if (full !== undefined) return full;
    const outcome = this.#set(change, id, { id, name, tag, owner });
    if (key === undefined || fingerprint === undefined) return outcome;
    const stored = { user: owner, key, fingerprint, plant: id };
    this.keys.push({ ...stored, atMs: this.nowMs });
    return { ...outcome, effect: { ...outcome.effect, key: stored } };
  }

  #full(owner: number): string | undefined {
    const { perUser = Infinity, perStore = Infinity } = this.rules.quotas;
    if (this.count(owner) >= perUser) return 'quota-exceeded user';
    return this.plants.size >= perStore ? 'quota-exceeded store' : undefined;
  }

  /** Replaces a plant. Returns the effect. */
  #set(
    { kind, by, request }: Change,
    id: number,
    after: OwnedPlant | undefined,
  ): { result: unknown; effect: Effect } {
    const before = this.plants.get(id);
    const isUsedAgain = before === undefined && id <= this.lastId;
    const endedDeletion = isUsedAgain ? this.deletions.get(id)?.position : undefined;
    this.lastId = Math.max(this.lastId, id);
    const { lastId } = this;
    const position = ++this.position;
    const { hasLog } = this.rules;
    this.deletions.delete(id);
    if (before !== undefined && after === undefined && hasLog)
      this.deletions.set(id, { position, plant: ownedOf(before) });
    const stored = after && { ...after, position };
    if (stored === undefined) this.plants.delete(id);
    else this.plants.set(id, stored);
    const { owner, name, tag } = before ?? {};
    const event = `${kind.replace(/e$/, '')}ed` as 'created';
    const previous = kind === 'restore' ? endedDeletion : before?.position;
    const logged = {
      position,
      previous,
      event,
      by,
      request,
      plant: id,
      owner,
      name,
      tag,
      left: stored,
    };
    const entry = hasLog ? logged : undefined;
    const effect = { id, before, after: stored, lastId, position, endedDeletion };
    const created = { id, position, isReplay: false };
    const result = kind === 'create' ? created : (stored ?? position);
    return { result, effect: { ...effect, key: undefined, entry } };
  }
}

function ownedOf({ id, name, tag, owner }: OwnedPlant): OwnedPlant {
  return { id, name, tag, owner };
}

class Run {
  readonly #below: (bound: number) => number;
  readonly #model: Model;
  #request = 0;

  constructor(below: (bound: number) => number) {
    this.#below = below;
    const quota = () => (below(2) === 0 ? undefined : 1 + below(8));
    const rules = { quotas: { perUser: quota(), perStore: quota() }, hasLog: below(3) > 0 };
    this.#model = new Model(rules, below(3) === 0 ? maxId - below(4) : 5);
    // From before the quotas, or while there was a log.
    for (const id of [1, 2, 3, 4]) {
      const plant = { id, name: 'old', tag: '', owner: this.#pick(users) };
      const { plants, deletions } = this.#model;
      if (below(2) === 0) plants.set(id, { ...plant, position: id });
      else deletions.set(id, { position: id, plant: rules.hasLog ? plant : undefined });
    }
  }

  /** Decides some changes. Returns how many. */
  takeGroup(counts: Map<string, number>): number {
    this.#changeOthers();
    const model = this.#model;
    const { rules } = model;
    const changes = Array.from({ length: 1 + this.#below(maxGroup) }, () => this.#change());
    const before = new Map(model.plants);
    const group = this.#readAhead(changes);
    const effects: Effect[] = [];
    for (const change of changes) {
      const [alone, inGroup] = [outcomeOf(change, model, rules), outcomeOf(change, group, rules)];
      const applied = model.apply(change);
      const expected =
        typeof applied === 'string' ? applied : { result: applied.result, ...effectOf(applied) };
      assertSame(alone, expected, change);
      assertSame(inGroup, expected, change);
      const name = typeof expected === 'string' ? expected : nameOf(change, expected);
      counts.set(name, (counts.get(name) ?? 0) + 1);
      if (typeof inGroup === 'string' || inGroup.effect === undefined) continue;
      group.add(inGroup.effect);
      effects.push(inGroup.effect);
    }
    const { created, updated, deleted } = group.results();
    for (const id of deleted) assert.ok(before.delete(id));
    for (const plant of created) assert.ok(!before.has(plant.id));
    for (const plant of updated) assert.ok(before.has(plant.id));
    for (const plant of [...created, ...updated]) before.set(plant.id, plant);
    assertSame(sorted(before), sorted(model.plants));
    assertSame(
      group.entries,
      effects.flatMap(({ entry }) => entry ?? []),
    );
    assertSame(
      group.newKeys,
      effects.flatMap(({ key, position }) => (key === undefined ? [] : { ...key, position })),
    );
    assertSame(
      [...group.endedDeletions],
      effects.flatMap(({ endedDeletion }) => endedDeletion ?? []),
    );
    assert.deepEqual(
      [group.lastId, group.position, group.count(undefined)],
      [model.lastId, model.position, model.plants.size],
    );
    return changes.length;
  }

  /** What a group of another kind or another process does meanwhile. */
  #changeOthers(): void {
    const { reach, revoked, outdated, plants, deletions, nowMs } = this.#model;
    const user = this.#pick(users);
    this.#model.setTime(nowMs + this.#below(keepKeysMs / 4));
    outdated.clear();
    if (this.#below(2) === 0) revoked.clear();
    switch (this.#below(12)) {
      case 0:
      case 1:
        reach.set(user, this.#reachOf(user));
        outdated.add(user);
        break;
      case 2:
        revoked.add(user);
        break;
      case 3:
        // The user is removed, and their plants belong to the next one.
        for (const plant of plants.values()) if (plant.owner === user) plant.owner = (user % 3) + 1;
        for (const [id, { plant, position }] of deletions)
          if (plant?.owner === user) deletions.set(id, { position, plant: undefined });
        this.#model.keys = this.#model.keys.filter((each) => each.user !== user);
        break;
      default:
    }
  }

  /** A token without `plants:read` sees nothing. */
  #reachOf(user: number): ChangeReach {
    const write = this.#pick<Reach>(['all', [user], users, [1, user].slice(user === 1 ? 1 : 0)]);
    return this.#pick<ChangeReach>([
      [write, write],
      [users, write],
      [[], write],
    ]);
  }

  #change(): Change {
    const user = this.#pick(users);
    const id = 1 + this.#below(8);
    const by = [0, `token ${user}`, user] as const;
    const author = { store: 1, by, request: `request ${this.#request++}` };
    const { outdated, reach: current } = this.#model;
    const reachBefore = this.#pick<ChangeReach>([
      ['all', 'all'],
      [[], []],
      [users, users],
    ]);
    const reach = (outdated.has(user) ? undefined : current.get(user)) ?? reachBefore;
    const text = () => this.#pick(['a', 'b', '']);
    const kind = this.#pick(['create', 'create', 'update', 'delete', 'restore'] as const);
    switch (kind) {
      case 'create': {
        const wanted = this.#pick([undefined, undefined, id, id, id, maxId - this.#below(2)]);
        const largest = this.#below(20) === 0 ? wanted : undefined;
        const usual = wanted !== undefined && wanted > 8 ? largest : wanted;
        const key = this.#below(3) > 0 ? undefined : ([text(), text()] as const);
        return { kind, ...author, owner: user, id: usual, name: text(), tag: text(), key };
      }
      case 'update': {
        const [name, tag] = [this.#pick([undefined, text()]), this.#pick([undefined, text()])];
        return { kind, ...author, id, reach, condition: this.#condition(id), name, tag };
      }
      case 'delete':
        return { kind, ...author, id, reach, condition: this.#condition(id) };
      case 'restore':
        return { kind, ...author, id, reach, condition: undefined };
    }
  }

  #condition(id: number): Condition | undefined {
    const plant = this.#model.plants.get(id);
    const tags = plant === undefined ? ['x'] : ['x', entityTag(plant)];
    const one = () => this.#pick([undefined, undefined, 'any', tags, ['x'], []] as const);
    return this.#below(2) === 0 ? undefined : { match: one(), noneMatch: one() };
  }

  /** What an engine reads before a group, and no more. */
  #readAhead(changes: readonly Change[]): GroupFacts {
    const model = this.#model;
    const { perUser = 0 } = model.rules.quotas;
    const named = changes.flatMap(({ id }) => id ?? []);
    const plants = named.flatMap((id) => model.plants.get(id) ?? []);
    const added = changes.flatMap(({ kind, id = 0 }) =>
      kind === 'create' || kind === 'restore' ? id : [],
    );
    const deletions = [...model.deletions].filter(([id]) => added.includes(id));
    const deleted = deletions.flatMap(([, { plant }]) => plant ?? []);
    const owners = [...plants, ...deleted].map(({ owner }) => owner);
    const creators = changes.flatMap((one) => (one.kind === 'create' ? one.owner : []));
    const counts = [...owners, ...creators].map((owner) => {
      return [owner, Math.min(model.count(owner), perUser + changes.length)] as const;
    });
    const group = new GroupFacts((by) => model.reachNow(by));
    group.lastId = model.lastId;
    group.position = model.position;
    for (const plant of plants) group.plants.set(plant.id, plant);
    for (const [id, deletion] of deletions) group.deletions.set(id, deletion);
    for (const one of model.keys) group.keys.set(keyOf(one.user, one.key), one);
    for (const [owner, count] of counts) group.counts.set(owner, count);
    group.counts.set(undefined, model.plants.size);
    group.randomFreeId = () => model.randomFreeId();
    const known = group.deletion.bind(group);
    group.deletion = (id) => known(id) ?? (added.includes(id) ? undefined : model.deletion(id));
    return group;
  }

  #pick<T>(all: readonly T[]): T {
    return all[this.#below(all.length)] as T; // none is empty
  }
}

function nameOf({ kind }: Change, { result, effect }: Exclude<Outcome, string>): string {
  if (effect !== undefined) return kind;
  return result !== undefined && kind === 'create' ? 'replay' : 'nothing';
}

function sorted(plants: ReadonlyMap<number, OwnedPlant>): readonly OwnedPlant[] {
  return [...plants.values()].toSorted((a, b) => a.id - b.id);
}

/** Without an effect, there is no member. */
function effectOf({ effect }: Exclude<Outcome, string>): { effect?: Effect } {
  return effect === undefined ? {} : { effect };
}

/** JSON is compared first, because it is much faster. */
function assertSame(actual: unknown, expected: unknown, change?: Change): void {
  if (JSON.stringify(actual) === JSON.stringify(expected)) return;
  assert.deepEqual({ actual, change }, { actual: expected, change });
}
