/**
 * The check of the linearizability tests: it rejects false histories, and accepts correct ones.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { faultsOf, plant, type Effect, type List, type Operation } from './support/history.ts';
import { check, type Step } from './support/linearizability.ts';
import { share, type ShareEffect } from './support/share-recorder.ts';

const alice = { name: 'alice', isManager: false };
const bob = { name: 'bob', isManager: false };
const maria = { name: 'maria', isManager: true };

/** Without times, a step begins after the end of the one before it. */
interface Act<E> {
  effect: E;
  who?: typeof alice;
  call?: number;
  end?: number;
}

const inTurn = <E>(acts: readonly Act<E>[]): Step<E>[] =>
  acts.map((act, at) => ({ who: alice, call: 10 * at, end: 10 * at + 5, ...act }));
const by = <E>(who: typeof alice, act: Act<E>): Act<E> => ({ ...act, who });
const during = <E>(call: number, end: number, act: Act<E>): Act<E> => ({ ...act, call, end });
/** The response of the step is lost. */
const lost = <E>(act: Act<E>): Act<E> => ({ ...act, end: Infinity });

const act = (effect: Effect): Act<Effect> => ({ effect });
const content = (name: string) => ({ name, tag: `tag of ${name}` });
const maybe = (name?: string) => (name === undefined ? undefined : content(name));
const create = (name: string) => act({ kind: 'create', content: content(name) });
const assign = (name: string) => act({ kind: 'assign', content: content(name) });
const update = (name: string, condition?: string) =>
  act({ kind: 'update', content: content(name), condition: maybe(condition) });
const remove = (condition?: string) => act({ kind: 'delete', condition: maybe(condition) });
const changed = (condition: string) => act({ kind: 'changed', condition: content(condition) });
const restore = (name: string) => act({ kind: 'restore', content: content(name) });
const see = (name: string) => act({ kind: 'see', content: content(name) });
const missing = act({ kind: 'see', content: undefined });
const notTagged = (tag: string) => act({ kind: 'see', content: undefined, tag });
const taken = act({ kind: 'taken' });
const held = act({ kind: 'held' });
const nothing = act({ kind: 'nothing' });
const unknownRestore = lost(act({ kind: 'restore' }));

const right: Record<string, Act<Effect>[]> = {
  'nothing happens': [],
  'a read during a create': [during(0, 99, create('a')), missing, see('a')],
  'a read during a delete': [create('a'), during(9, 99, remove()), see('a'), missing],
  'one of two concurrent creates': [during(0, 50, create('a')), by(bob, taken), see('a')],
  'an id that is used again': [create('a'), remove(), create('b'), see('b')],
  'a create that waits for a concurrent delete': [
    during(0, 15, create('a')),
    during(5, 40, create('b')),
    during(10, 40, remove()),
    during(50, 51, see('b')),
  ],
  'a lost create without effect': [lost(create('a')), missing, missing],
  'a lost create with a late effect': [lost(create('a')), missing, see('a')],
  'a lost create behind a conflict': [lost(create('a')), by(bob, taken)],
  'a lost delete with a late effect': [create('a'), lost(remove()), see('a'), missing],
  'a lost delete of the next plant': [create('a'), lost(remove()), remove(), create('b'), missing],
  'a lost update with a late effect': [create('a'), lost(update('b')), see('a'), changed('a')],
  'a lost restore with a late effect': [create('a'), remove(), unknownRestore, missing, see('a')],
  'members and a manager': [create('a'), by(bob, missing), by(maria, see('a'))],
  'a list by another tag': [create('a'), notTagged('tag of b')],
  'one of two concurrent updates with one condition': [
    create('a'),
    during(10, 99, update('b', 'a')),
    by(maria, changed('a')),
    see('b'),
  ],
  'an update by a manager': [create('a'), by(maria, update('b')), see('b'), by(bob, missing)],
  'a restore by a manager': [create('a'), remove(), by(maria, restore('a')), see('a'), held],
  'an id of another member': [
    create('a'),
    remove(),
    by(bob, nothing),
    by(bob, create('b')),
    nothing,
  ],
  'a request at the instant of a response': [create('a'), during(5, 6, missing)],
};

const wrong: Record<string, Act<Effect>[]> = {
  'a stale read after a create': [create('a'), missing],
  'a stale read after a delete': [create('a'), remove(), see('a')],
  'a stale read after an update': [create('a'), update('b'), see('a')],
  'a stale read of the plant before': [create('a'), remove(), create('b'), see('a')],
  'a lost write': [create('a'), see('a'), missing],
  'a plant that is missing once': [create('a'), see('a'), missing, see('a')],
  'a resurrected plant': [create('a'), remove(), missing, see('a')],
  'two creates': [during(0, 50, create('a')), during(1, 50, by(bob, create('b')))],
  'two deletes': [create('a'), during(10, 50, remove()), during(11, 50, remove())],
  'a read from the future': [see('a'), create('a')],
  'a delete of what is not there yet': [remove(), create('a')],
  'other content': [create('a'), see('b')],
  'another tag': [create('a'), act({ kind: 'see', content: { name: 'a', tag: '' } })],
  'a conflict with a free id': [create('a'), remove(), taken],
  'a lost create that happens twice': [lost(create('a')), remove(), see('a')],
  'a lost delete that happens twice': [create('a'), lost(remove()), missing, create('b'), missing],
  'a lost create before it was sent': [see('a'), lost(create('a'))],
  'an assigned id that was held before': [create('a'), remove(), assign('b')],
  "another member's plant": [create('a'), by(bob, see('a'))],
  "a delete of another member's plant": [create('a'), by(bob, remove())],
  "an update of another member's plant": [create('a'), by(bob, update('b', 'a'))],
  'a manager who does not see a plant': [create('a'), by(maria, missing)],
  'a new owner after an update': [create('a'), by(maria, update('b')), missing],
  'two updates with one condition': [
    create('a'),
    during(10, 50, update('b', 'a')),
    during(11, 50, update('c', 'a')),
  ],
  'a condition that did not hold': [create('a'), remove('b')],
  'a refusal although the condition holds': [create('a'), changed('a')],
  'a refused condition of a plant out of reach': [create('a'), by(bob, changed('b'))],
  'a restore of an earlier state': [create('a'), update('b'), remove(), restore('a')],
  'two restores': [
    create('a'),
    remove(),
    during(20, 50, restore('a')),
    during(21, 50, restore('a')),
  ],
  'a restore by another member': [create('a'), remove(), by(bob, restore('a'))],
  'nothing to restore after a delete': [create('a'), remove(), nothing],
  'a held id of another member': [create('a'), by(bob, held)],
  'a list by tag without a plant': [create('a'), notTagged('tag of a')],
};

describe('the check of one plant', () => {
  it('accepts correct histories', () => {
    for (const [name, acts] of Object.entries(right)) {
      assert.equal(check(plant, inTurn(acts)), undefined, name);
    }
  });

  it('rejects false histories', () => {
    for (const [name, acts] of Object.entries(wrong)) {
      assert.ok(check(plant, inTurn(acts)), name);
    }
  });

  it('decides a long history with many concurrent steps and lost responses', () => {
    const acts: Act<Effect>[] = [];
    for (let at = 0; at < 2_000; at += 4) {
      acts.push(during(at, at + 2, create(at % 8 === 0 ? 'a' : 'b')));
      acts.push(during(at + 1, at + 4, remove()));
      for (let reader = 0; reader < 8; reader++) acts.push(during(at + 1, at + 5, missing));
      if (at % 200 === 0) acts.push(by(bob, during(at, Infinity, create('c'))));
    }
    assert.equal(check(plant, inTurn(acts)), undefined);
    assert.ok(check(plant, inTurn([...acts, during(3_000, 3_001, see('a'))])));
  });
});

describe('the check of a share', () => {
  const set = (access: 'read' | 'write', isNew?: boolean) => {
    return { effect: { kind: 'set' as const, access, isNew } };
  };
  const end = (existed?: boolean) => ({ effect: { kind: 'end' as const, existed } });
  const shows = (...states: ('none' | 'read' | 'write')[]) => {
    return { effect: { kind: 'see' as const, states } };
  };
  const verdict = (...acts: Act<ShareEffect>[]) => check(share, inTurn(acts));
  const isRight = (...acts: Act<ShareEffect>[]) => assert.equal(verdict(...acts), undefined);
  const isWrong = (...acts: Act<ShareEffect>[]) => assert.ok(verdict(...acts));

  it('requires every request that begins after a change to apply it', () => {
    isRight(set('read', true), shows('read', 'write'), end(true), shows('none'));
    isWrong(set('read', true), shows('none'));
    isWrong(set('read', true), shows('write'));
    isWrong(set('read', true), end(true), shows('read', 'write'));
    isWrong(set('write', true), set('read', false), shows('write'));
    isWrong(shows('read'), set('read', true));
  });

  it('lets concurrent requests see either state, but none again after a newer one', () => {
    isRight(during(0, 99, set('read', true)), shows('none'), shows('read'));
    isWrong(during(0, 99, set('read', true)), shows('read'), shows('none'));
  });

  it('compares whether a share is new, and whether there was one to end', () => {
    isWrong(set('read', false));
    isWrong(set('read', true), set('write', true));
    isWrong(end(true));
    isWrong(set('read', true), end(false));
  });

  it('allows a lost change to take effect late or never, but once', () => {
    isRight(lost(set('read')), shows('none'), shows('read'));
    isRight(set('read', true), lost(end()), shows('read'));
    isWrong(lost(set('read')), shows('read'), shows('none'));
    isWrong(lost(set('read')), end(true), shows('read'));
  });
});

describe('the check of a store', () => {
  type Shown = Act<Effect> & ({ id: number | undefined } | { list: List });
  const store = (...shown: readonly Shown[]) => faultsOf(inTurn(shown) as Operation[]); // the rest of each is kept
  const on = (id: number | undefined, one: Act<Effect>) => ({ ...one, id });
  const unseen = (name: string) => on(undefined, lost(assign(name)));
  const listed = (all: Record<string, number>, more = {}) => {
    const plants = Object.entries(all).map(([name, id]) => ({ id, ...content(name) }));
    return { ...missing, list: { after: 0, limit: 9, upTo: Infinity, plants, ...more } };
  };
  const isRight = (...shown: Shown[]) => assert.deepEqual(store(...shown), []);
  const isWrong = (fault: RegExp, ...shown: Shown[]) =>
    assert.match(store(...shown).join('\n'), fault);

  it('accepts assigned ids only in the order of their creates, gaps included', () => {
    isRight(on(1, assign('a')), on(5, assign('b')), on(6, assign('c')));
    isRight(on(2, during(0, 99, assign('a'))), on(1, assign('b')));
    isWrong(/b was assigned 1/, on(2, assign('a')), on(1, assign('b')));
    isWrong(/b was assigned 3/, on(7, create('a')), on(3, assign('b')));
    isWrong(/b was assigned 7/, on(7, create('a')), on(7, remove()), on(7, assign('b')));
    isWrong(/plant 1 is not/, on(1, during(0, 99, assign('a'))), on(1, assign('b')));
  });

  it('checks each plant of a list separately, within the range of the list', () => {
    const three = [on(1, assign('a')), on(2, assign('b')), on(3, assign('c'))];
    isRight(...three, listed({ a: 1, b: 2, c: 3 }));
    isRight(...three, listed({ a: 1, b: 2 }, { limit: 2, upTo: 2 }));
    isRight(...three, listed({ c: 3 }, { after: 2 }));
    isRight(...three, listed({ b: 2 }, { tag: 'tag of b' }));
    isWrong(/plant 2 is not/, ...three, listed({ a: 1, c: 3 }));
    isWrong(/plant 3 is not/, ...three, listed({ a: 1, b: 2 }));
    isWrong(/plant 2 is not/, ...three, listed({ a: 1, b: 2 }, { tag: 'tag of a' }));
    isWrong(/out of order/, ...three, listed({ b: 2, a: 1, c: 3 }));
    isWrong(/out of order/, ...three, listed({ b: 2, c: 3 }, { after: 2 }));
    isWrong(/out of order/, ...three, listed({ a: 1, b: 2, c: 3 }, { limit: 2 }));
  });

  it('matches a create without a response to one id that is shown, and no second one', () => {
    isRight(unseen('a'));
    isRight(unseen('a'), on(1, see('a')), on(2, assign('b')));
    isWrong(/plant [12] is not/, unseen('a'), on(1, see('a')), on(2, see('a')));
    isWrong(/plant 1 is not/, on(1, see('a')), unseen('a'));
    isWrong(/a was assigned 1/, on(5, create('b')), unseen('a'), on(1, see('a')));
  });

  it('allows a create with an unseen id to explain one plant above the earlier ids', () => {
    isRight(unseen('a'), unseen('b'), on(1, taken), on(2, taken));
    isWrong(/is not/, unseen('a'), on(1, taken), on(2, taken));
    isWrong(/is not/, on(1, taken), unseen('a'));
    isWrong(/is not/, on(5, create('b')), unseen('a'), on(4, taken));
    // The first lost create explains both, the second only the plant 6.
    isRight(unseen('a'), on(5, assign('c')), unseen('b'), on(6, taken), on(4, taken));
  });
});
