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

const changeKinds: readonly Effect['kind'][] = ['create', 'assign', 'delete'];

/** Whether each step is possible at its place in the order. */
function isPossible(order: readonly Step[]): boolean {
  return order.every(({ who, call, effect }, at) => {
    const before = order.slice(0, at);
    if (order.slice(at + 1).some((later) => later.end < call)) return false;
    const last = before.findLast(({ effect: { kind } }) => changeKinds.includes(kind));
    const plant =
      last !== undefined && 'content' in last.effect && last.effect.content !== undefined
        ? { ...last.effect.content, owner: last.who.name }
        : undefined;
    const seen = who.isManager || plant?.owner === who.name ? plant : undefined;
    switch (effect.kind) {
      case 'create':
        return plant === undefined;
      case 'assign':
        return last === undefined;
      case 'taken':
        return plant !== undefined;
      case 'delete':
        return seen !== undefined;
      case 'see': {
        const shown = effect.tag === undefined || effect.tag === seen?.tag ? seen : undefined;
        return effect.content?.name === shown?.name && effect.content?.tag === shown?.tag;
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
  fc.record({ kind: fc.constant('delete' as const) }),
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
    kind: fc.constantFrom('create', 'assign', 'delete', 'see' as const),
    content: anyContent,
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
  return all.map(({ who, kind, content: planned, before, after, outcome }, at) => {
    const times = { who, call: 2 * at - before, end: 2 * at + after };
    const change: Effect | undefined =
      kind === 'see'
        ? undefined
        : kind === 'delete'
          ? { kind: 'delete' }
          : { kind, content: planned };
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
      { kind: 'see', content: undefined },
      ...['a', 'b'].map((name) => ({ kind: 'see' as const, content: content(name) })),
    ];
    const effect = candidates.find(isNextPossible);
    assert.ok(effect);
    return { ...times, effect };
  });
}
