/**
 * Random changes by several users and an operator, through two processes: whatever happens at once, the log of the store
 * replays to the store, and has each acknowledged change once.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { scopes, type Caller } from '../src/access/access.ts';
import { entityTag, type Condition } from '../src/plants/condition.ts';
import type { ChangeEvent, LoggedChange } from '../src/log/change-log.ts';
import { isProblem } from '../src/problem.ts';
import type { Storage } from '../src/storage.ts';
import { addToken } from './support/app.ts';
import { assertReplays } from './support/replay.ts';
import { identify } from './support/tokens.ts';

const names = ['maria', 'alice', 'bob', 'carol'] as const;
type Name = (typeof names)[number];

type Change =
  | { kind: 'create'; id: number | undefined; name: string; tag: string }
  | { kind: 'import'; first: number; count: number }
  | {
      kind: 'update';
      id: number;
      name: string | undefined;
      tag: string | undefined;
      isConditional: boolean;
    }
  | { kind: 'delete'; id: number; isConditional: boolean }
  | { kind: 'restore'; id: number }
  | { kind: 'share'; other: Name; access: 'read' | 'write' }
  | { kind: 'unshare'; other: Name }
  | { kind: 'move'; other: Name }
  | { kind: 'remove'; other: Name }
  | { kind: 'token' };

export type Step = Change & { who: Name };

const id = fc.integer({ min: 1, max: 5 });
const who = fc.constantFrom(...names, 'maria' as const); // who has access to all plants
const text = fc.constantFrom('a', 'b', 'é', '𝒳 𝒳', "';--");
const isConditional = fc.boolean();
const kind = <K extends string>(one: K) => fc.constant(one);
const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: kind('create'),
      id: fc.option(id, { nil: undefined }),
      name: text,
      tag: text,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: kind('import'),
      first: id,
      count: fc.integer({ min: 2, max: 9 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: kind('update'),
      id,
      name: fc.option(text, { nil: undefined }),
      tag: fc.option(text, { nil: undefined }),
      isConditional,
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: kind('delete'), id, isConditional }) },
  { weight: 6, arbitrary: fc.record({ kind: kind('restore'), id }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: kind('share'),
      other: who,
      access: fc.constantFrom('read' as const, 'write' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind('unshare'), other: who }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('move'), other: who }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('remove'), other: who }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('token') }) },
);

/** The steps of a batch are carried out at the same time. */
export const batches = (count: number): fc.Arbitrary<Step[][]> => {
  const step = fc.tuple(change, who).map(([one, name]): Step => ({ ...one, who: name }));
  const batch = fc.array(step, { minLength: 1, maxLength: 6 });
  return fc.array(batch, { minLength: count, maxLength: count });
};

let runs = 0;

/** Carries out all batches in a new store, and replays its log after each. Counts the changes by event. */
export async function logReplays(
  processes: readonly [Storage, Storage],
  all: readonly Step[][],
  counts: Partial<Record<ChangeEvent, number>>,
): Promise<void> {
  const run = new Run(processes, `store ${++runs}`);
  let changes: readonly LoggedChange[] = [];
  for (const batch of all) {
    await Promise.all(batch.map((step) => run.take(step)));
    changes = await run.check();
  }
  for (const { event } of changes) counts[event] = (counts[event] ?? 0) + 1;
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
    return changes;
  }

  async take(step: Step): Promise<void> {
    const at = this.#requests++;
    const storage = this.#processes[at % 2 === 0 ? 0 : 1];
    const request = `request ${at}`;
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
    const caller = await this.#callerOf(storage, step.who);
    switch (step.kind) {
      case 'create': {
        const { id: wanted, name, tag } = step;
        const plant = { name, tag, ...(wanted !== undefined && { id: wanted }) };
        await plants.create(caller, plant, { request });
        return 'created';
      }
      case 'import': {
        const ids = Array.from({ length: step.count }, (_, at) => step.first + at);
        const rows = ids.map((each) => plants.create(caller, { name: 'row', id: each }));
        const outcomes = await Promise.allSettled(rows);
        for (const one of outcomes) {
          if (one.status === 'rejected' && !isRefusal(one.reason)) throw one.reason;
        }
        return undefined;
      }
      case 'update': {
        const { id: wanted, name, tag } = step;
        const condition = await this.#conditionOf(storage, caller, step);
        const patch = { ...(name !== undefined && { name }), ...(tag !== undefined && { tag }) };
        this.#updates.add(request);
        await plants.update(caller, wanted, patch, { condition, request });
        return undefined;
      }
      case 'delete': {
        const condition = await this.#conditionOf(storage, caller, step);
        const isDeleted = await plants.delete(caller, step.id, { condition, request });
        return isDeleted ? 'deleted' : undefined;
      }
      case 'restore':
        return (await plants.restore(caller, step.id, { request })) && 'restored';
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
        const heir = await users.find(this.#store, step.other);
        if (heir === undefined || step.other === step.who) return undefined;
        if (step.kind === 'move') await users.movePlants(caller, heir.user, 3);
        else if (!this.#isRemoving) await this.#remove(storage, step.who, caller, heir.user);
        return undefined;
      }
      case 'token':
        await this.#addToken(storage, step.who);
        return undefined;
    }
  }

  async #remove(storage: Storage, name: Name, user: Caller, heir: number): Promise<void> {
    this.#isRemoving = true;
    await removeUser(storage, user, heir).finally(() => (this.#isRemoving = false));
    this.#tokens.delete(name);
  }

  async #callerOf(storage: Storage, name: Name): Promise<Caller> {
    const token = this.#tokens.get(name) ?? (await this.#addToken(storage, name));
    const grant = await identify(storage, token);
    assert.ok(grant);
    return grant.caller;
  }

  async #addToken(storage: Storage, name: Name): Promise<string> {
    const role = name === 'maria' ? 'manager' : 'member';
    const token = await addToken(storage, name, { store: this.#store, role, scopes });
    this.#tokens.set(name, token);
    return token;
  }

  /** The entity tag of the plant a moment ago. */
  async #conditionOf(
    { plants }: Storage,
    caller: Caller,
    { id: wanted, isConditional: isAsked }: Step & { kind: 'update' | 'delete' },
  ): Promise<Condition | undefined> {
    const plant = isAsked ? await plants.find(caller, wanted) : undefined;
    return plant && { match: [entityTag(plant)] };
  }
}

/** Whether nothing was changed because of what others did meanwhile. */
function isRefusal(error: unknown): boolean {
  const kinds = ['id-taken', 'plant-read-only', 'precondition-failed', 'invalid-token'] as const;
  return kinds.some((each) => isProblem(error, each));
}
