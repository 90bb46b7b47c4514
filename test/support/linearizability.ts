/**
 * Decides whether the operations on one object are linearizable: each could have happened at an instant between
 * its request and its response. Objects are checked separately, because linearizability is local (Herlihy
 * and Wing, 1990).
 *
 * The algorithm is that of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993), with the
 * memoization of Lowe ("Testing for linearizability", 2017).
 */

export interface Person {
  readonly name: string;
  readonly isManager: boolean;
}

/** The part of one operation that concerns one object. Times are of one monotonic clock. */
export interface Step<Effect> {
  readonly who: Person;
  /** When the request was sent. */
  readonly call: number;
  /** When the response arrived. Infinity if the outcome is unknown: the step takes effect later or never. */
  readonly end: number;
  readonly effect: Effect;
}

/** What an object does. States are plain data. */
export interface Specification<State, Effect> {
  readonly initial: State;
  /** Whether the step leaves every state unchanged. */
  readonly isRead: (effect: Effect) => boolean;
  /** The state after the step, the same object if it is unchanged; undefined if the step cannot happen in this state. */
  readonly apply: (step: Step<Effect>, state: State) => State | undefined;
}

/** If a history needs more configurations, it has too many unknown outcomes to decide. */
const maxConfigurations = 1_000_000;

/** A partial order of the steps, and the state that it leads to. */
interface Configuration<State> {
  /** All known steps before this index are done. */
  first: number;
  /** Known steps after `first` that are done too. */
  done: ReadonlySet<number>;
  /** Unknown steps that took effect. */
  taken: ReadonlySet<number>;
  state: State;
}

/** Undefined if the steps, given in any order, are linearizable, otherwise a description of where they are not. */
export function check<State, Effect>(
  specification: Specification<State, Effect>,
  steps: readonly Step<Effect>[],
): string | undefined {
  const known = steps.filter(({ end }) => end !== Infinity).toSorted((a, b) => a.call - b.call);
  const unknown = steps.filter(({ end }) => end === Infinity);
  const visited = new Set<string>();
  const { initial: state } = specification;
  const stack: Configuration<State>[] = [{ first: 0, done: new Set(), taken: new Set(), state }];
  const push = (found: Configuration<State>) => {
    const key = keyOf(found);
    if (visited.has(key)) return;
    if (visited.size === maxConfigurations) throw new Error('too many unknown outcomes to decide');
    visited.add(key);
    stack.push(found);
  };
  let farthest = 0;
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { first, done, candidates, minEnd } = settleReads(specification, known, next);
    const { taken, state: before } = next;
    if (first === known.length) return undefined;
    farthest = Math.max(farthest, first);
    // Unknown steps are pushed first, and so tried last: most of them never took effect.
    for (const [at, step] of unknown.entries()) {
      if (taken.has(at) || step.call > minEnd) continue;
      const after = specification.apply(step, before);
      if (after === undefined || after === before) continue;
      push({ first, done, taken: new Set(taken).add(at), state: after });
    }
    for (const [at, step] of candidates.toReversed()) {
      const after = specification.apply(step, before);
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
function settleReads<State, Effect>(
  { isRead, apply }: Specification<State, Effect>,
  known: readonly Step<Effect>[],
  { first, done: before, state }: Configuration<State>,
) {
  const done = new Set(before);
  const candidates: [at: number, step: Step<Effect>][] = [];
  let minEnd = Infinity;
  for (let at = first; at < known.length; at++) {
    if (done.has(at)) continue;
    const step = known[at] as Step<Effect>; // the index is in range
    if (step.call > minEnd) break;
    if (isRead(step.effect) && apply(step, state) !== undefined) {
      done.add(at);
    } else {
      candidates.push([at, step]);
      minEnd = Math.min(minEnd, step.end);
    }
  }
  while (done.delete(first)) first++;
  return { first, done, candidates, minEnd };
}

function keyOf<State>({ first, done, taken, state }: Configuration<State>): string {
  const sorted = (set: ReadonlySet<number>) => [...set].toSorted((a, b) => a - b);
  return JSON.stringify([first, sorted(done), sorted(taken), state]);
}

/** The step that fits nowhere, and the steps around it. */
function around<Effect>(steps: readonly Step<Effect>[], stuck: Step<Effect> | undefined): string {
  const sorted = steps.toSorted((a, b) => a.call - b.call);
  const at = sorted.findIndex((step) => step === stuck);
  const time = (atMs: number) =>
    atMs === Infinity ? 'unknown' : (atMs - (stuck?.call ?? 0)).toFixed(3);
  return sorted
    .slice(Math.max(0, at - 12), at + 13)
    .map((step) => {
      const { who, call, end, effect } = step;
      const mark = step === stuck ? '>' : ' ';
      return `${mark} ${time(call)} to ${time(end)} ${who.name}: ${JSON.stringify(effect)}`;
    })
    .join('\n');
}
