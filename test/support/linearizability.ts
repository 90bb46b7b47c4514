/**
 * Decides whether the operations on one object are linearizable: each could have happened at an instant between
 * its request and its response. Plants and shares are checked separately, because linearizability is local (Herlihy
 * and Wing, 1990).
 *
 * The algorithm is that of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993), with the
 * memoization of Lowe ("Testing for linearizability", 2017).
 */

export interface Person {
  readonly name: string;
  readonly isManager: boolean;
}

/** The content of a plant. Its owner is in no response, but decides who sees the plant. */
export interface Content {
  readonly name: string;
  readonly tag: string;
}

export type Effect =
  /** The client chose the id. */
  | { readonly kind: 'create'; readonly content: Content }
  /** The store assigned the id, so it had never held it before. */
  | { readonly kind: 'assign'; readonly content: Content }
  /** A create was refused because the store holds the id. */
  | { readonly kind: 'taken' }
  /** With a condition, the plant must have that content. */
  | { readonly kind: 'update'; readonly content: Content; readonly condition?: Content | undefined }
  | { readonly kind: 'delete'; readonly condition?: Content | undefined }
  /** An update or a delete was refused because the plant does not have the content of its condition. */
  | { readonly kind: 'changed'; readonly condition: Content }
  /** The content is unknown if the response was lost. */
  | { readonly kind: 'restore'; readonly content?: Content }
  /** A restore was refused because a plant within reach has the id, or because there is nothing to restore. */
  | { readonly kind: 'held' }
  | { readonly kind: 'nothing' }
  /** A read, or a delete with a 404 response. With a tag, a plant with another tag counts as missing. */
  | { readonly kind: 'see'; readonly content: Content | undefined; readonly tag?: string };

/** The part of one operation that concerns one object. Times are of one monotonic clock. */
export interface StepOf<E> {
  readonly who: Person;
  /** When the request was sent. */
  readonly call: number;
  /** When the response arrived. Infinity if the outcome is unknown: the step takes effect later or never. */
  readonly end: number;
  readonly effect: E;
}
export type Step = StepOf<Effect>;

/** What an object does. States are compared by identity. */
export interface Specification<S, E> {
  readonly initial: S;
  /** Whether the step leaves every state unchanged. */
  isRead(effect: E): boolean;
  /** The state after the step; undefined if the step cannot happen in this state. */
  apply(step: StepOf<E>, state: S): S | undefined;
}

interface Plant {
  readonly content: Content;
  readonly owner: string;
}

/** What the store holds with the id, and the plant that was deleted last. */
interface State {
  readonly held: Plant | undefined;
  readonly deleted: Plant | undefined;
}

const never: State = { held: undefined, deleted: undefined };

/** Undefined if the steps are linearizable, otherwise a description of where they are not. */
export type Verdict = undefined | string;

/** If a history needs more configurations, it has too many unknown outcomes to decide. */
const maxConfigurations = 1_000_000;

/** A partial order of the steps, and the state that it leads to. */
interface Configuration<S> {
  /** All known steps before this index are done. */
  first: number;
  /** Known steps after `first` that are done too. */
  done: ReadonlySet<number>;
  /** Unknown steps that took effect. */
  taken: ReadonlySet<number>;
  state: S;
}

/** Checks the steps of one plant, given in any order. The plant must not have existed before. */
export function check(steps: readonly Step[]): Verdict {
  return checkAgainst(plant, steps);
}

/** Checks the steps of one object, given in any order. */
export function checkAgainst<S, E>(
  specification: Specification<S, E>,
  steps: readonly StepOf<E>[],
): Verdict {
  const { initial } = specification;
  const known = steps.filter(({ end }) => end !== Infinity).toSorted((a, b) => a.call - b.call);
  const unknown = steps.filter(({ end }) => end === Infinity);
  const numbers = new Map<S, number>();
  const visited = new Set<string>();
  const stack: Configuration<S>[] = [
    { first: 0, done: new Set(), taken: new Set(), state: initial },
  ];
  let farthest = 0;

  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { configuration, candidates, minEnd } = settleReads(specification, known, next);
    const { first, done, taken, state } = configuration;
    if (first === known.length) return undefined;
    farthest = Math.max(farthest, first);

    const push = (found: Configuration<S>) => {
      const key = keyOf(found, numbers);
      if (visited.has(key)) return;
      if (visited.size === maxConfigurations)
        throw new Error('too many unknown outcomes to decide');
      visited.add(key);
      stack.push(found);
    };
    // Unknown steps are pushed first, and so tried last: most of them never took effect.
    unknown.forEach((step, at) => {
      if (taken.has(at) || step.call > minEnd) return;
      const after = specification.apply(step, state);
      if (after === undefined || after === state) return;
      push({ first, done, taken: new Set(taken).add(at), state: after });
    });
    for (const at of candidates.toReversed()) {
      const after = specification.apply(known[at] as StepOf<E>, state); // the index is in range
      if (after !== undefined) push({ first, done: new Set(done).add(at), taken, state: after });
    }
  }
  return around(steps, known[farthest]);
}

/**
 * Takes every possible next step that leaves every state unchanged: this excludes no later order. Also returns
 * the other possible next steps, and the earliest end of one of them: steps that were called after it come
 * later.
 */
function settleReads<S, E>(
  specification: Specification<S, E>,
  known: readonly StepOf<E>[],
  { first, done: before, taken, state }: Configuration<S>,
) {
  const done = new Set(before);
  const candidates: number[] = [];
  let minEnd = Infinity;
  for (let at = first; at < known.length; at++) {
    if (done.has(at)) continue;
    const step = known[at] as StepOf<E>; // the index is in range
    if (step.call > minEnd) break;
    if (specification.isRead(step.effect) && specification.apply(step, state) === state) {
      done.add(at);
    } else {
      candidates.push(at);
      minEnd = Math.min(minEnd, step.end);
    }
  }
  while (done.delete(first)) first++;
  return { configuration: { first, done, taken, state }, candidates, minEnd };
}

const plant: Specification<State, Effect> = {
  initial: never,
  isRead: ({ kind }) => ['taken', 'see', 'changed', 'held', 'nothing'].includes(kind),
  apply,
};

function apply({ who, effect }: Step, state: State): State | undefined {
  const { held, deleted } = state;
  const isInReach = (one: Plant | undefined): one is Plant =>
    one !== undefined && (who.isManager || one.owner === who.name);
  const seen = isInReach(held) ? held : undefined;
  const meets = (condition: Content | undefined) =>
    condition === undefined || isSame(condition, seen?.content);
  switch (effect.kind) {
    case 'create':
      return held === undefined ? stateOf(plantOf(effect.content, who.name), deleted) : undefined;
    case 'assign':
      return state === never ? stateOf(plantOf(effect.content, who.name), undefined) : undefined;
    case 'taken':
      return held === undefined ? undefined : state;
    case 'update':
      if (seen === undefined || !meets(effect.condition)) return undefined;
      return stateOf(plantOf(effect.content, seen.owner), deleted);
    case 'delete':
      return seen !== undefined && meets(effect.condition) ? stateOf(undefined, seen) : undefined;
    case 'changed':
      return seen !== undefined && !meets(effect.condition) ? state : undefined;
    case 'restore': {
      if (held !== undefined || !isInReach(deleted)) return undefined;
      const isRight = effect.content === undefined || isSame(effect.content, deleted.content);
      return isRight ? stateOf(deleted, undefined) : undefined;
    }
    case 'held':
      return isInReach(held) ? state : undefined;
    case 'nothing':
      return isInReach(held ?? deleted) ? undefined : state;
    case 'see': {
      const shown = effect.tag === undefined || seen?.content.tag === effect.tag ? seen : undefined;
      return isSame(effect.content, shown?.content) ? state : undefined;
    }
  }
}

function isSame(one: Content | undefined, other: Content | undefined): boolean {
  return one?.name === other?.name && one?.tag === other?.tag;
}

/** One object for each plant and each state, so that equal states are identical. */
const plants = new WeakMap<Content, Map<string, Plant>>();
const states = new WeakMap<Plant, WeakMap<Plant, State>>();
const none: Plant = { content: { name: '', tag: '' }, owner: '' };

function plantOf(content: Content, owner: string): Plant {
  let byOwner = plants.get(content);
  if (byOwner === undefined) plants.set(content, (byOwner = new Map()));
  let found = byOwner.get(owner);
  if (found === undefined) byOwner.set(owner, (found = { content, owner }));
  return found;
}

function stateOf(held: Plant | undefined, deleted: Plant | undefined): State {
  let byDeleted = states.get(held ?? none);
  if (byDeleted === undefined) states.set(held ?? none, (byDeleted = new WeakMap()));
  let state = byDeleted.get(deleted ?? none);
  if (state === undefined) byDeleted.set(deleted ?? none, (state = { held, deleted }));
  return state;
}

function keyOf<S>(
  { first, done, taken, state }: Configuration<S>,
  numbers: Map<S, number>,
): string {
  const number = numbers.get(state) ?? numbers.size;
  numbers.set(state, number);
  const sorted = (set: ReadonlySet<number>) => [...set].toSorted((a, b) => a - b).join();
  return `${first};${sorted(done)};${sorted(taken)};${number}`;
}

/** The step that fits nowhere, and the steps around it. */
function around<E>(steps: readonly StepOf<E>[], stuck: StepOf<E> | undefined): string {
  const call = stuck?.call ?? 0;
  const sorted = steps.toSorted((a, b) => a.call - b.call);
  const at = sorted.findIndex((step) => step === stuck);
  return sorted
    .slice(Math.max(0, at - 12), at + 13)
    .map((step) => `${step === stuck ? '>' : ' '} ${describe(step, call)}`)
    .join('\n');
}

function describe<E>({ who, call, end, effect }: StepOf<E>, zero: number): string {
  const time = (at: number) => (at === Infinity ? 'unknown' : (at - zero).toFixed(3));
  return `${time(call)} to ${time(end)} ${who.name}: ${JSON.stringify(effect)}`;
}
