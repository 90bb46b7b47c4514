/**
 * Random changes by several users and an operator, through two processes: whatever happens at once, the log of the store
 * replays to the store, and has each acknowledged change once. Who follows the log has what they can list.
 */
import assert from 'node:assert/strict';
import {
  scopes,
  type Caller,
  type Grant,
  type Role,
  type ShareAccess,
} from '../src/access/access.ts';
import { openArchive } from '../src/cli/database.ts';
import { verifyArchive } from '../src/copy/verify.ts';
import type { ChangeEvent, LoggedChange } from '../src/log/change-log.ts';
import { entityTag, type Condition } from '../src/plants/entity-tag.ts';
import { isProblem } from '../src/problem.ts';
import type { Storage } from '../src/storage.ts';
import { addToken } from './support/app.ts';
import { seededRandom } from './support/random.ts';
import { Mirror } from './support/mirror.ts';
import { listOf } from './support/scene.ts';
import { assertReplays } from './support/replay.ts';
import { rounds, sizeOf } from './support/rounds.ts';
import { it, storageOf, testDatabase } from './support/storages.ts';
import { identify } from './support/tokens.ts';

const batches = sizeOf({ usual: 25, long: 60 });
const maxBatch = 6;

it('the log of random changes replays to the store, and to what each user can list', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  await using other = await database.open();
  const counts: Partial<Record<ChangeEvent, number>> = {};
  const reasons: string[] = [];
  const isSqlite = storageOf(t) === 'SQLite';
  await rounds(t, async (_, seed) => {
    const random = seededRandom(seed);
    const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T; // not empty
    for (let store = 0; store < (isSqlite ? 12 : 4); store++) {
      const run = new Run([storage, other], `store ${store} of ${seed}`);
      let changes: readonly LoggedChange[] = [];
      for (let batch = 0; batch < batches; batch++) {
        // The steps of a batch are carried out at the same time.
        const size = pick(Array.from({ length: maxBatch }, (_each, at) => at + 1));
        const steps = Array.from({ length: size }, () => run.take(anyStep(pick)));
        await Promise.all([...steps, run.follow(pick(names), pick([1, 2, 3, 1_000]))]);
        changes = await run.check();
      }
      for (const { event } of changes) counts[event] = (counts[event] ?? 0) + 1;
      reasons.push(...run.reasons());
    }
  });
  await using archive = await openArchive(database.url, { create: false });
  assert.deepEqual((await verifyArchive(archive)).faults, []);
  t.diagnostic(JSON.stringify(counts));
  // Shares and roles end cursors, and nothing else does.
  assert.deepEqual([...new Set(reasons)], ['access-changed']);
  assert.ok(!isSqlite || Object.keys(counts).length >= 10, 'almost every event happened');
});

const names = ['maria', 'alice', 'bob', 'carol'] as const;
type Name = (typeof names)[number];

const weights = {
  create: 5,
  import: 1,
  update: 6,
  delete: 8,
  restore: 6,
  share: 2,
  unshare: 1,
  move: 1,
  remove: 1,
  token: 1,
  role: 1,
};
type Kind = keyof typeof weights;
const drawnKinds = (Object.keys(weights) as Kind[]) // the object has no others
  .flatMap((kind) => Array.from({ length: weights[kind] }, () => kind));

/** Each kind needs some of these. */
interface Step {
  kind: Kind;
  who: Name;
  other: Name;
  access: ShareAccess;
  id: number;
  /** Whether a create names its id, an update its fields, and a change what it has found. */
  hasId: boolean;
  hasName: boolean;
  hasTag: boolean;
  isConditional: boolean;
  name: string;
  tag: string;
  /** Rows of an import. */
  rows: number;
}

function anyStep(pick: <T>(all: readonly T[]) => T): Step {
  const either = () => pick([true, false]);
  const text = () => pick(['a', 'b', 'é', '𝒳 𝒳', "';--"]);
  return {
    kind: pick(drawnKinds),
    who: pick([...names, 'maria']), // who has access to all plants
    other: pick(names),
    access: pick(['read', 'write']),
    id: pick([1, 2, 3, 4, 5]),
    hasId: pick([true, true, true, false]),
    hasName: either(),
    hasTag: either(),
    isConditional: either(),
    name: text(),
    tag: text(),
    rows: pick([2, 5, 9]),
  };
}

/** As the command does it. The user stays if they create another plant meanwhile. */
async function removeUser({ users }: Storage, user: Caller, heir: number): Promise<void> {
  while ((await users.endAccess(user, Date.now(), 2)) > 0);
  while ((await users.movePlants(user, heir, 2)) > 0);
  await users.remove(user, Date.now());
}

class Run {
  readonly #processes: readonly [Storage, Storage];
  readonly #store: string;
  readonly #tokens = new Map<Name, string>();
  readonly #mirrors = new Map(names.map((name) => [name, new Mirror()]));
  /** The event of each acknowledged change, by the id of its request. */
  readonly #acknowledged = new Map<string, string>();
  /** Requests of updates, which can have changed nothing. */
  readonly #updates = new Set<string>();
  /** One user at a time: two who are each other's heirs would pass the plants on for ever. */
  #isRemoving = false;
  #requests = 0;

  constructor(processes: readonly [Storage, Storage], store: string) {
    this.#processes = processes;
    this.#store = store;
  }

  async check(): Promise<readonly LoggedChange[]> {
    const changes = await assertReplays(this.#processes[0], this.#store);
    const logged = new Map<string, string>();
    for (const { request, event } of changes) {
      if (request === undefined) continue;
      assert.ok(!logged.has(request), `${request} is logged once`);
      if (!this.#updates.has(request)) logged.set(request, event);
      else assert.equal(event, 'updated');
    }
    assert.deepEqual(logged, this.#acknowledged);
    for (const [name, mirror] of this.#mirrors) {
      await this.follow(name);
      const { caller } = await this.#grantOf(this.#processes[1], name);
      assert.deepEqual(mirror.list(), await listOf(this.#processes[1], caller), name);
    }
    return changes;
  }

  async follow(name: Name, limit?: number): Promise<void> {
    const storage = this.#processes[1];
    await this.#mirrors.get(name)?.follow(storage, await this.#grantOf(storage, name), limit);
  }

  reasons(): string[] {
    return [...this.#mirrors.values()].flatMap((mirror) => mirror.reasons);
  }

  async take(step: Step): Promise<void> {
    const at = this.#requests++;
    const storage = this.#processes[at % 2 === 0 ? 0 : 1];
    const request = `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`;
    try {
      const event = await this.#carryOut(storage, step, request);
      if (event !== undefined) this.#acknowledged.set(request, event);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }

  /** Resolves to the event that the log must have with the request. */
  async #carryOut(storage: Storage, step: Step, request: string): Promise<string | undefined> {
    const { plants, shares, users } = storage;
    const { id, name, tag } = step;
    const caller = await this.#callerOf(storage, step.who);
    switch (step.kind) {
      case 'create':
        await plants.create(caller, { name, tag, ...(step.hasId && { id }) }, { request });
        return 'created';
      case 'import': {
        const rows = Array.from({ length: step.rows }, (_, at) =>
          plants.create(caller, { name, id: id + at }),
        );
        const outcomes = await Promise.allSettled(rows);
        for (const one of outcomes) {
          if (one.status === 'rejected' && !isRefusal(one.reason)) throw one.reason;
        }
        return undefined;
      }
      case 'update': {
        const condition = await conditionOf(storage, caller, step);
        const patch = { ...(step.hasName && { name }), ...(step.hasTag && { tag }) };
        this.#updates.add(request);
        await plants.update(caller, id, patch, { condition, request });
        return undefined;
      }
      case 'delete': {
        const condition = await conditionOf(storage, caller, step);
        const position = await plants.delete(caller, id, { condition, request });
        return position === undefined ? undefined : 'deleted';
      }
      case 'restore':
        return (await plants.restore(caller, id, { request })) && 'restored';
      case 'share':
      case 'unshare': {
        const share = { owner: step.who, user: step.other };
        if (share.owner === share.user) return undefined;
        if (step.kind === 'unshare') await shares.end(caller.store, [share], caller);
        else await shares.set(caller.store, { ...share, access: step.access }, 0, caller);
        return undefined;
      }
      case 'move':
      case 'remove': {
        const { user: heir } = await users.find(this.#store, step.other);
        if (heir === undefined || step.other === step.who) return undefined;
        if (step.kind === 'move') await users.movePlants(caller, heir.user, 3);
        else if (!this.#isRemoving) await this.#remove(storage, step.who, caller, heir.user);
        return undefined;
      }
      case 'token':
        await this.#addToken(storage, step.who);
        return undefined;
      case 'role':
        await this.#addToken(storage, step.who, step.hasId ? 'manager' : 'member');
        return undefined;
    }
  }

  async #remove(storage: Storage, name: Name, user: Caller, heir: number): Promise<void> {
    this.#isRemoving = true;
    await removeUser(storage, user, heir).finally(() => (this.#isRemoving = false));
    this.#tokens.delete(name);
  }

  async #callerOf(storage: Storage, name: Name): Promise<Caller> {
    return (await this.#grantOf(storage, name)).caller;
  }

  async #grantOf(storage: Storage, name: Name): Promise<Grant> {
    const token = this.#tokens.get(name) ?? (await this.#addToken(storage, name));
    const grant = await identify(storage, token);
    assert.ok(grant);
    return grant;
  }

  async #addToken(
    storage: Storage,
    name: Name,
    role: Role = name === 'maria' ? 'manager' : 'member',
  ): Promise<string> {
    const token = await addToken(storage, name, { store: this.#store, role, scopes });
    this.#tokens.set(name, token);
    return token;
  }
}

/** The entity tag of the plant a moment ago. */
async function conditionOf(
  { plants }: Storage,
  caller: Caller,
  { id, isConditional }: Step,
): Promise<Condition | undefined> {
  const plant = isConditional ? await plants.find(caller, id) : undefined;
  return plant && { match: [entityTag(plant)] };
}

/** Whether nothing was changed because of what others did meanwhile. */
function isRefusal(error: unknown): boolean {
  const kinds = ['id-taken', 'plant-read-only', 'precondition-failed', 'invalid-token'] as const;
  return kinds.some((each) => isProblem(error, each));
}
