/**
 * The checker itself: it rejects wrong histories, accepts correct ones, and agrees with
 * a check that tries every order.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  alice,
  anySteps,
  bob,
  content,
  effects,
  runPlans,
  maria,
  plans,
  tryEveryOrder,
} from './support/every-order.ts';
import { faultsOf, type Exchange, type Operation } from './support/history.ts';
import {
  check,
  checkAgainst,
  type Effect,
  type Person,
  type Step,
  type StepOf,
} from './support/linearizability.ts';
import { shareRegister, type ShareEffect } from './support/share-recorder.ts';

const never = Infinity;

type Times = readonly [call: number, end: number];
const step = ([call, end]: Times, effect: Effect, who: Person): Step => ({
  who,
  call,
  end,
  effect,
});
const creates = (times: Times, name: string, who = alice) =>
  step(times, { kind: 'create', content: content(name) }, who);
const assigned = (times: Times, name: string, who = alice) =>
  step(times, { kind: 'assign', content: content(name) }, who);
const taken = (times: Times, who = alice) => step(times, { kind: 'taken' }, who);
const deletes = (times: Times, who = alice) => step(times, { kind: 'delete' }, who);
const updates = (times: Times, name: string, condition?: string, who = alice) => {
  const wanted = condition === undefined ? undefined : content(condition);
  return step(times, { kind: 'update', content: content(name), condition: wanted }, who);
};
const deletesIf = (times: Times, condition: string, who = alice) =>
  step(times, { kind: 'delete', condition: content(condition) }, who);
const refusedIf = (times: Times, condition: string, who = alice) =>
  step(times, { kind: 'changed', condition: content(condition) }, who);
const restores = (times: Times, name?: string, who = alice) =>
  step(times, { kind: 'restore', ...(name !== undefined && { content: content(name) }) }, who);
const held = (times: Times, who = alice) => step(times, { kind: 'held' }, who);
const nothing = (times: Times, who = alice) => step(times, { kind: 'nothing' }, who);
const sees = (times: Times, name: string, who = alice) =>
  step(times, { kind: 'see', content: content(name) }, who);
const misses = (times: Times, who = alice, tag?: string) =>
  step(times, { kind: 'see', content: undefined, ...(tag !== undefined && { tag }) }, who);

const right: Record<string, Step[]> = {
  'nothing happens': [],
  'a write is read': [creates([0, 1], 'a'), sees([2, 3], 'a')],
  'a read during a create sees nothing yet': [
    creates([0, 9], 'a'),
    misses([1, 2]),
    sees([3, 4], 'a'),
  ],
  'a read during a delete sees it still': [
    creates([0, 1], 'a'),
    deletes([2, 9]),
    sees([3, 4], 'a'),
    misses([5, 6]),
  ],
  'one of two concurrent creates wins': [
    creates([0, 5], 'a'),
    taken([1, 6], bob),
    sees([7, 8], 'a'),
  ],
  'one of two concurrent deletes wins': [creates([0, 1], 'a'), deletes([2, 5]), misses([3, 4])],
  'a second create waits for a delete that is concurrent with both': [
    creates([0, 3], 'a'),
    creates([1, 9], 'b'),
    deletes([2, 8]),
    sees([10, 11], 'b'),
  ],
  'an id is used again after a delete': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    creates([4, 5], 'b'),
    sees([6, 7], 'b'),
  ],
  'an unknown create never happens': [creates([0, never], 'a'), misses([5, 6]), misses([50, 60])],
  'an unknown create happens late': [creates([0, never], 'a'), misses([5, 6]), sees([50, 60], 'a')],
  'an unknown create explains a conflict': [creates([0, never], 'a'), taken([5, 6], bob)],
  'an unknown delete never happens': [
    creates([0, 1], 'a'),
    deletes([2, never]),
    sees([50, 60], 'a'),
  ],
  'an unknown delete happens late': [
    creates([0, 1], 'a'),
    deletes([2, never]),
    sees([5, 6], 'a'),
    misses([50, 60]),
  ],
  'an unknown delete hits the next plant': [
    creates([0, 1], 'a'),
    deletes([2, never]),
    deletes([3, 4]),
    creates([5, 6], 'b'),
    misses([7, 8]),
  ],
  'two unknown creates explain two plants': [
    creates([0, never], 'a'),
    creates([0, never], 'b'),
    deletes([1, 2]),
    sees([3, 4], 'b'),
  ],
  'another member sees nothing, a manager everything': [
    creates([0, 1], 'a'),
    misses([2, 3], bob),
    sees([2, 3], 'a', maria),
  ],
  'a list by tag leaves out other tags': [creates([0, 1], 'a'), misses([2, 3], alice, 'tag of b')],
  'an update is read': [creates([0, 1], 'a'), updates([2, 3], 'b'), sees([4, 5], 'b')],
  'one of two concurrent updates with the same condition wins': [
    creates([0, 1], 'a'),
    updates([2, 5], 'b', 'a'),
    refusedIf([3, 6], 'a', maria),
    sees([7, 8], 'b'),
  ],
  'a condition holds again after a change back': [
    creates([0, 1], 'a'),
    updates([2, 3], 'b'),
    updates([4, 5], 'a'),
    deletesIf([6, 7], 'a'),
  ],
  'an unknown update happens late': [
    creates([0, 1], 'a'),
    updates([2, never], 'b'),
    sees([3, 4], 'a'),
    refusedIf([9, 10], 'a'),
  ],
  'a manager updates, and the owner stays': [
    creates([0, 1], 'a'),
    updates([2, 3], 'b', undefined, maria),
    sees([4, 5], 'b'),
    misses([4, 5], bob),
  ],
  'a deleted plant is restored as it was, for its owner': [
    creates([0, 1], 'a'),
    updates([2, 3], 'b'),
    deletes([4, 5]),
    restores([6, 7], 'b', maria),
    sees([8, 9], 'b'),
    held([10, 11]),
  ],
  'one of two concurrent restores wins': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    restores([4, 7], 'a'),
    held([5, 8]),
  ],
  'the id of a deleted plant is in use by another member': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    nothing([4, 5], bob),
    creates([6, 7], 'b', bob),
    nothing([8, 9]),
    held([8, 9], bob),
  ],
  'an unknown restore happens late': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    restores([4, never]),
    misses([5, 6]),
    sees([7, 8], 'a'),
  ],
  'an answer and a request at one instant are concurrent': [creates([0, 1], 'a'), misses([1, 2])],
};

const wrong: Record<string, Step[]> = {
  'a stale read after an acknowledged create': [creates([0, 1], 'a'), misses([2, 3])],
  'a stale read after an acknowledged delete': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    sees([4, 5], 'a'),
  ],
  'a stale read of the plant that had the id before': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    creates([4, 5], 'b'),
    sees([6, 7], 'a'),
  ],
  'a lost write': [creates([0, 1], 'a'), sees([2, 3], 'a'), misses([4, 5]), misses([6, 7])],
  'a resurrected plant': [creates([0, 1], 'a'), deletes([2, 3]), misses([4, 5]), sees([6, 7], 'a')],
  'two creates of one id, both 201': [creates([0, 5], 'a'), creates([1, 6], 'b', bob)],
  'two deletes of one plant, both 204': [creates([0, 1], 'a'), deletes([2, 5]), deletes([3, 6])],
  'a read from the future': [sees([0, 1], 'a'), creates([2, 3], 'a')],
  'a delete of what is not there yet': [deletes([0, 1]), creates([2, 3], 'a')],
  'a read of other content': [creates([0, 1], 'a'), sees([2, 3], 'b')],
  'a read with the tag of another': [
    creates([0, 1], 'a'),
    step([2, 3], { kind: 'see', content: { name: 'a', tag: '' } }, alice),
  ],
  'content that no client sent': [sees([0, 1], 'c')],
  'a 404 between two reads without a delete': [
    creates([0, 1], 'a'),
    sees([2, 3], 'a'),
    misses([4, 5]),
    sees([6, 7], 'a'),
  ],
  'a 409 although the id is free': [taken([0, 1])],
  'a 409 after a delete': [creates([0, 1], 'a'), deletes([2, 3]), taken([4, 5])],
  'a 201 although the id is taken': [creates([0, 1], 'a'), creates([2, 3], 'b')],
  'an unknown create that happens twice': [
    creates([0, never], 'a'),
    deletes([1, 2]),
    sees([3, 4], 'a'),
  ],
  'an unknown delete that happens twice': [
    creates([0, 1], 'a'),
    deletes([2, never]),
    misses([3, 4]),
    creates([5, 6], 'b'),
    misses([7, 8]),
  ],
  'an unknown create that is seen, and then not': [
    creates([0, never], 'a'),
    sees([1, 2], 'a'),
    misses([3, 4]),
  ],
  'an unknown create before it was sent': [sees([0, 1], 'a'), creates([2, never], 'a')],
  'two readers who see two creates in opposite order': [
    creates([0, 9], 'a'),
    creates([0, never], 'b', bob),
    deletes([0, 9], maria),
    sees([1, 2], 'a', maria),
    sees([3, 4], 'b', maria),
    sees([5, 6], 'a', maria),
  ],
  'an assigned id that was held before': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    assigned([4, 5], 'b'),
  ],
  'an id that is assigned twice': [assigned([0, 1], 'a'), deletes([2, 3]), assigned([4, 5], 'b')],
  "another member's plant": [creates([0, 1], 'a'), sees([2, 3], 'a', bob)],
  "a delete of another member's plant": [creates([0, 1], 'a'), deletes([2, 3], bob)],
  'a manager who does not see a plant': [creates([0, 1], 'a'), misses([2, 3], maria)],
  'a stale read after an update': [creates([0, 1], 'a'), updates([2, 3], 'b'), sees([4, 5], 'a')],
  'two updates with the same condition, both 200': [
    creates([0, 1], 'a'),
    updates([2, 5], 'b', 'a'),
    updates([3, 6], 'c', 'a'),
  ],
  'a condition that did not hold': [creates([0, 1], 'a'), deletesIf([2, 3], 'b')],
  'a 412 although the condition holds': [creates([0, 1], 'a'), refusedIf([2, 3], 'a')],
  'a 412 for a plant out of reach': [creates([0, 1], 'a'), refusedIf([2, 3], 'b', bob)],
  'an update of what is not there': [creates([0, 1], 'a'), deletes([2, 3]), updates([4, 5], 'b')],
  "an update of another member's plant": [creates([0, 1], 'a'), updates([2, 3], 'b', 'a', bob)],
  'an owner who changes with an update': [
    creates([0, 1], 'a'),
    updates([2, 3], 'b', undefined, maria),
    misses([4, 5]),
  ],
  'a restore of an earlier state': [
    creates([0, 1], 'a'),
    updates([2, 3], 'b'),
    deletes([4, 5]),
    restores([6, 7], 'a'),
  ],
  'two restores of one plant, both 200': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    restores([4, 7], 'a'),
    restores([5, 8], 'a'),
  ],
  'a restore by another member': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    restores([4, 5], 'a', bob),
  ],
  'a restored plant of another member': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    creates([4, 5], 'b', bob),
    deletes([6, 7], bob),
    restores([8, 9], 'a'),
  ],
  'nothing to restore after a delete': [creates([0, 1], 'a'), deletes([2, 3]), nothing([4, 5])],
  'a conflict with the plant of another member': [
    creates([0, 1], 'a'),
    deletes([2, 3]),
    creates([4, 5], 'b', bob),
    held([6, 7]),
  ],
  'a conflict shown to another member': [creates([0, 1], 'a'), held([2, 3], bob)],
  'a list by tag that leaves out a plant': [
    creates([0, 1], 'a'),
    misses([2, 3], alice, 'tag of a'),
  ],
};

describe('the check of one plant', () => {
  for (const [name, steps] of Object.entries(right)) {
    it(`accepts: ${name}`, () => {
      assert.equal(check(steps), undefined);
      assert.ok(tryEveryOrder(steps));
    });
  }
  for (const [name, steps] of Object.entries(wrong)) {
    it(`rejects: ${name}`, () => {
      assert.equal(typeof check(steps), 'string');
      assert.ok(!tryEveryOrder(steps));
    });
  }

  it('agrees with every order on random histories, correct ones and those with a changed response', () => {
    const counts = { right: 0, wrong: 0 };
    const agrees = fc.property(plans, fc.nat(), effects, (all, victim, effect) => {
      const history = runPlans(all);
      assert.equal(check(history), undefined);
      const mutated = history.map((one, at) =>
        at === victim % history.length ? { ...one, effect } : one,
      );
      const isRight = tryEveryOrder(mutated);
      counts[isRight ? 'right' : 'wrong']++;
      assert.equal(check(mutated) === undefined, isRight);
    });
    fc.assert(agrees, { numRuns: 5_000 }); // a failure prints its seed
    assert.ok(Math.min(counts.right, counts.wrong) > 500, JSON.stringify(counts));
  });

  it('agrees with every order on completely random histories', () => {
    const counts = { right: 0, wrong: 0 };
    const agrees = fc.property(anySteps, (steps) => {
      const isRight = tryEveryOrder(steps);
      counts[isRight ? 'right' : 'wrong']++;
      assert.equal(check(steps) === undefined, isRight);
    });
    fc.assert(agrees, { numRuns: 5_000 });
    assert.ok(Math.min(counts.right, counts.wrong) > 500, JSON.stringify(counts));
  });

  it('decides a long history with many concurrent steps and unknown outcomes', () => {
    const steps: Step[] = [];
    for (let at = 0; at < 2_000; at += 4) {
      const name = at % 8 === 0 ? 'a' : 'b';
      steps.push(creates([at, at + 2], name), deletes([at + 1, at + 4]));
      for (let reader = 0; reader < 8; reader++) steps.push(misses([at + 1, at + 5]));
      if (at % 200 === 0) steps.push(creates([at, never], 'c', bob));
    }
    assert.equal(check(steps), undefined);
    assert.equal(typeof check([...steps, sees([3_000, 3_001], 'a')]), 'string');
  });
});

describe('the check of a share', () => {
  const on = ([call, end]: Times, effect: ShareEffect): StepOf<ShareEffect> => {
    return { who: alice, call, end, effect };
  };
  const set = (times: Times, access: 'read' | 'write', isNew?: boolean) =>
    on(times, { kind: 'set', access, isNew });
  const ends = (times: Times, existed?: boolean) => on(times, { kind: 'end', existed });
  const shows = (times: Times, ...states: ('none' | 'read' | 'write')[]) =>
    on(times, { kind: 'see', states });
  const isRight = (...steps: StepOf<ShareEffect>[]) =>
    assert.equal(checkAgainst(shareRegister, steps), undefined);
  const isWrong = (...steps: StepOf<ShareEffect>[]) =>
    assert.equal(typeof checkAgainst(shareRegister, steps), 'string');

  it('requires every request that begins after a change to apply it', () => {
    isRight(set([0, 1], 'read', true), shows([2, 3], 'read', 'write'));
    isWrong(set([0, 1], 'read', true), shows([2, 3], 'none'));
    isWrong(set([0, 1], 'read', true), shows([2, 3], 'write'));
    isRight(set([0, 1], 'read', true), ends([2, 3], true), shows([4, 5], 'none'));
    isWrong(set([0, 1], 'read', true), ends([2, 3], true), shows([4, 5], 'read', 'write'));
    isWrong(set([0, 1], 'write', true), set([2, 3], 'read', false), shows([4, 5], 'write'));
    isWrong(shows([0, 1], 'read'), set([2, 3], 'read', true));
  });

  it('lets concurrent requests see either state, but none again after a newer one', () => {
    isRight(set([0, 9], 'read', true), shows([1, 2], 'none'), shows([3, 4], 'read'));
    isWrong(set([0, 9], 'read', true), shows([1, 2], 'read'), shows([3, 4], 'none'));
    // The second change must come last, although it could have been first too.
    isRight(set([0, 3], 'read', true), set([1, 9], 'read', false), set([4, 5], 'write', false));
    isRight(
      set([0, 1], 'read', true),
      set([2, 9], 'read', false),
      set([3, 8], 'write', false),
      shows([10, 11], 'read'),
    );
  });

  it('compares whether a share is new, and whether there was one to end', () => {
    isWrong(set([0, 1], 'read', false));
    isWrong(set([0, 1], 'read', true), set([2, 3], 'write', true));
    isWrong(ends([0, 1], true));
    isWrong(set([0, 1], 'read', true), ends([2, 3], false));
    isWrong(set([0, 1], 'read', true), ends([2, 5], true), ends([3, 6], true));
  });

  it('allows an unknown change to take effect late or never, but once', () => {
    isRight(set([0, never], 'read'), shows([5, 6], 'none'), shows([7, 8], 'read'));
    isRight(set([0, 1], 'read', true), ends([2, never]), shows([5, 6], 'read'));
    isWrong(set([0, never], 'read'), shows([5, 6], 'read'), shows([7, 8], 'none'));
    isWrong(set([0, never], 'read'), ends([1, 2], true), shows([3, 4], 'read'));
  });
});

describe('the check of a store', () => {
  const op = ([call, end]: Times, exchange: Exchange, who = alice): Operation => {
    return { who, call, end, exchange };
  };
  const created = (times: Times, name: string, id: number, wanted?: number) =>
    op(times, { kind: 'created', content: content(name), wanted, id });
  const lost = (times: Times, name: string) =>
    op(times, { kind: 'lost create', content: content(name), wanted: undefined });
  const found = (times: Times, name: string, id: number) =>
    op(times, { kind: 'found', id, content: content(name) });
  const refused = (times: Times, id: number) => op(times, { kind: 'taken', id });
  const listed = (times: Times, all: Record<string, number>, more = {}) => {
    const plants = Object.entries(all).map(([name, id]) => ({ id, ...content(name) }));
    return op(times, { kind: 'listed', after: 0, limit: 9, upTo: Infinity, plants, ...more });
  };
  const isRight = (...history: Operation[]) => assert.deepEqual(faultsOf(history), []);
  const isWrong = (fault: RegExp, ...history: Operation[]) =>
    assert.match(faultsOf(history).join('\n'), fault);

  it('accepts assigned ids only in the order of their creates, gaps included', () => {
    isRight(created([0, 1], 'a', 1), created([2, 3], 'b', 5), created([4, 5], 'c', 6));
    isRight(created([0, 5], 'a', 2), created([1, 4], 'b', 1));
    isWrong(/b was assigned 1/, created([0, 1], 'a', 2), created([2, 3], 'b', 1));
    isWrong(/b was assigned 3/, created([0, 1], 'a', 7, 7), created([2, 3], 'b', 3));
    isWrong(/plant 1 is not/, created([0, 5], 'a', 1), created([1, 4], 'b', 1));
    isWrong(
      /b was assigned 7/,
      created([0, 1], 'a', 7, 7),
      op([2, 3], { kind: 'deleted', id: 7, condition: undefined }),
      created([4, 5], 'b', 7),
    );
  });

  it('checks each plant of a list separately, within the range of the list', () => {
    const three = [created([0, 1], 'a', 1), created([2, 3], 'b', 2), created([4, 5], 'c', 3)];
    isRight(...three, listed([6, 7], { a: 1, b: 2, c: 3 }));
    isRight(...three, listed([6, 7], { a: 1, b: 2 }, { limit: 2, upTo: 2 }));
    isRight(...three, listed([6, 7], { c: 3 }, { after: 2 }));
    isRight(...three, listed([6, 7], { b: 2 }, { tag: 'tag of b' }));
    isRight(...three.slice(0, 2), listed([2, 7], { a: 1, c: 3 }), created([4, 5], 'c', 3));
    isWrong(/plant 2 is not/, ...three, listed([6, 7], { a: 1, c: 3 }));
    isWrong(/plant 3 is not/, ...three, listed([6, 7], { a: 1, b: 2 }));
    isWrong(/plant 2 is not/, ...three, listed([6, 7], { a: 1, b: 2 }, { tag: 'tag of a' }));
    isWrong(/out of order/, ...three, listed([6, 7], { b: 2, a: 1, c: 3 }));
    isWrong(/out of order/, ...three, listed([6, 7], { b: 2, c: 3 }, { after: 2 }));
    isWrong(/out of order/, ...three, listed([6, 7], { a: 1, b: 2, c: 3 }, { limit: 2 }));
  });

  it('matches a create without a response to one observed id, and no second one', () => {
    isRight(lost([0, 1], 'a'));
    isRight(lost([0, 1], 'a'), found([2, 3], 'a', 1), created([4, 5], 'b', 2));
    isRight(created([0, 1], 'b', 1), lost([0, 1], 'a'), listed([8, 9], { b: 1, a: 2 }));
    isWrong(/plant [12] is not/, lost([0, 1], 'a'), found([2, 3], 'a', 1), found([4, 5], 'a', 2));
    isWrong(/plant 1 is not/, found([0, 1], 'a', 1), lost([2, 3], 'a'));
    isWrong(
      /a was assigned 1/,
      created([0, 1], 'b', 5, 5),
      lost([2, 3], 'a'),
      found([4, 5], 'a', 1),
    );
  });

  it('allows a create with an unseen id to explain one plant above the earlier ids', () => {
    isRight(lost([0, 1], 'a'), refused([2, 3], 1));
    isRight(lost([0, 1], 'a'), lost([0, 1], 'b'), refused([2, 3], 1), refused([2, 3], 2));
    isWrong(/is not/, lost([0, 1], 'a'), refused([2, 3], 1), refused([2, 3], 2));
    isWrong(/is not/, refused([0, 1], 1), lost([2, 3], 'a'));
    isWrong(/is not/, created([0, 1], 'b', 5, 5), lost([2, 3], 'a'), refused([4, 5], 4));
    // The first lost create explains both, the second only the plant 6.
    isRight(
      lost([0, 1], 'a'),
      created([2, 3], 'c', 5, 5),
      lost([4, 5], 'b'),
      refused([6, 7], 6),
      refused([6, 7], 4),
    );
  });
});
