/**
 * Checks small histories by trying every order, and generates random histories. It uses another algorithm than
 * linearizability.ts, so that the two do not share a defect.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { Content, Effect, Person, Step } from './linearizability.ts';

export const alice: Person = { name: 'alice', isManager: false };
export const bob: Person = { name: 'bob', isManager: false };
export const maria: Person = { name: 'maria', isManager: true };

const contents = Object.fromEntries(
  ['a', 'b', 'c'].map((name) => [name, { name, tag: `tag of ${name}` }]),
);
export const content = (name: string): Content => contents[name] ?? assert.fail(name);

/** Whether any order of the steps is possible. Unknown steps can be left out. */
export function tryEveryOrder(steps: readonly Step[]): boolean {
  const extend = (order: readonly Step[]): boolean => {
    if (!isPossible(order)) return false;
    const left = steps.filter((step) => !order.includes(step));
    if (left.every(({ end }) => end === Infinity)) return true;
    return left.some((step) => extend([...order, step]));
  };
  return extend([]);
}

const changeKinds: readonly Effect['kind'][] = ['create', 'assign', 'update', 'delete', 'restore'];

type Plant = Content & { owner: string };

/** Each plant that the id had, and undefined after each delete. */
function plantsAfter(order: readonly Step[]): (Plant | undefined)[] {
  const plants: (Plant | undefined)[] = [];
  for (const { who, effect } of order) {
    const { kind } = effect;
    const present = plants.at(-1);
    if (kind === 'create' || kind === 'assign') {
      plants.push({ ...effect.content, owner: who.name });
    } else if (kind === 'update' && present !== undefined) {
      plants.push({ ...effect.content, owner: present.owner });
    } else if (kind === 'delete') {
      plants.push(undefined);
    } else if (kind === 'restore') {
      plants.push(lastDeleted(plants));
    }
  }
  return plants;
}

function lastDeleted(plants: readonly (Plant | undefined)[]): Plant | undefined {
  return plants[plants.lastIndexOf(undefined) - 1];
}

/** Whether each step is possible at its place in the order. */
function isPossible(order: readonly Step[]): boolean {
  return order.every(({ who, call, effect }, at) => {
    if (order.slice(at + 1).some((later) => later.end < call)) return false;
    const plants = plantsAfter(order.slice(0, at));
    const plant = plants.at(-1);
    const inReach = (one: Plant | undefined) =>
      who.isManager || one?.owner === who.name ? one : undefined;
    const seen = inReach(plant);
    const deleted = inReach(lastDeleted(plants));
    const isSame = (wanted: Content | undefined, actual: Content | undefined) =>
      wanted?.name === actual?.name && wanted?.tag === actual?.tag;
    switch (effect.kind) {
      case 'create':
        return plant === undefined;
      case 'assign':
        return plants.length === 0;
      case 'taken':
        return plant !== undefined;
      case 'update':
      case 'delete':
        return seen !== undefined && isSame(effect.condition ?? seen, seen);
      case 'changed':
        return seen !== undefined && !isSame(effect.condition, seen);
      case 'restore':
        return (
          plant === undefined && deleted !== undefined && isSame(effect.content ?? deleted, deleted)
        );
      case 'held':
        return seen !== undefined;
      case 'nothing':
        return plant === undefined ? deleted === undefined : seen === undefined;
      case 'see': {
        const shown = effect.tag === undefined || effect.tag === seen?.tag ? seen : undefined;
        return isSame(effect.content, shown);
      }
    }
  });
}

// Random steps: at most six, because every order of them is tried.
const people = fc.constantFrom(alice, bob, maria);
const anyContent = fc.constantFrom('a', 'b').map(content);
export const effects: fc.Arbitrary<Effect> = fc.oneof(
  fc.record({ kind: fc.constant('create' as const), content: anyContent }),
  fc.record({ kind: fc.constant('assign' as const), content: anyContent }),
  fc.record({ kind: fc.constant('taken' as const) }),
  fc.record({
    kind: fc.constant('update' as const),
    content: anyContent,
    condition: fc.option(anyContent, { nil: undefined }),
  }),
  fc.record({
    kind: fc.constant('delete' as const),
    condition: fc.option(anyContent, { nil: undefined }),
  }),
  fc.record({ kind: fc.constant('changed' as const), condition: anyContent }),
  fc.oneof(
    fc.record({ kind: fc.constant('restore' as const), content: anyContent }),
    fc.constant<Effect>({ kind: 'restore' }),
  ),
  fc.record({ kind: fc.constantFrom('held' as const, 'nothing' as const) }),
  fc.record({
    kind: fc.constant('see' as const),
    content: fc.option(anyContent, { nil: undefined }),
  }),
  fc.constant<Effect>({ kind: 'see', content: undefined, tag: 'tag of a' }),
);
const isChange = ({ kind }: Effect) => changeKinds.includes(kind);

export const anySteps = fc.array(
  fc
    .record({
      who: people,
      call: fc.nat(12),
      takes: fc.nat(6),
      effect: effects,
      isLost: fc.boolean(),
    })
    .map(({ who, call, takes, effect, isLost }): Step => {
      return { who, call, end: isLost && isChange(effect) ? Infinity : call + takes, effect };
    }),
  { minLength: 1, maxLength: 6 },
);

/**
 * Operations at successive instants. `before` and `after` are the times since the request and to the response.
 */
export const plans = fc.array(
  fc.record({
    who: people,
    kind: fc.constantFrom('create', 'assign', 'update', 'delete', 'restore', 'see' as const),
    content: anyContent,
    condition: fc.option(anyContent, { nil: undefined, freq: 2 }),
    before: fc.nat(5),
    after: fc.nat(5),
    outcome: fc.constantFrom('known', 'known', 'known', 'unknown', 'nothing'),
  }),
  { minLength: 1, maxLength: 6 },
);
type Plan = typeof plans extends fc.Arbitrary<readonly (infer P)[]> ? P : never;

/** The steps of the plans, carried out in their order. */
export function runPlans(all: readonly Plan[]): Step[] {
  const order: Step[] = [];
  return all.map(({ who, kind, content: planned, condition, before, after, outcome }, at) => {
    const times = { who, call: 2 * at - before, end: 2 * at + after };
    const change = changeOf(kind, planned, condition);
    // Ignores the times, because the order is fixed.
    const isNextPossible = (effect: Effect) =>
      isPossible([...order, { ...times, effect }].map((step) => ({ ...step, call: 0, end: 1 })));
    if (change !== undefined && outcome === 'nothing')
      return { ...times, end: Infinity, effect: change };
    if (change !== undefined && isNextPossible(change)) {
      const done = { ...times, effect: change, ...(outcome === 'unknown' && { end: Infinity }) };
      order.push(done);
      return done;
    }
    const candidates: Effect[] = [
      ...(kind === 'create' || kind === 'assign' ? [{ kind: 'taken' as const }] : []),
      ...(kind === 'restore' ? [{ kind: 'held' as const }, { kind: 'nothing' as const }] : []),
      ...(condition === undefined ? [] : [{ kind: 'changed' as const, condition }]),
      { kind: 'see', content: undefined },
      ...['a', 'b'].map((name) => ({ kind: 'see' as const, content: content(name) })),
    ];
    const effect = candidates.find(isNextPossible);
    assert.ok(effect);
    return { ...times, effect };
  });
}

function changeOf(
  kind: Plan['kind'],
  planned: Content,
  condition: Content | undefined,
): Effect | undefined {
  switch (kind) {
    case 'see':
      return undefined;
    case 'delete':
      return { kind, condition };
    case 'update':
      return { kind, content: planned, condition };
    case 'restore':
      return { kind };
    case 'create':
    case 'assign':
      return { kind, content: planned };
  }
}
