/**
 * `user restore`: the plants of a user are put back as they were, while others write.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Caller } from '../../src/access/access.ts';
import { putBackAll } from '../../src/access/put-back.ts';
import { localTime, parsePastMs } from '../../src/cli/options.ts';
import { differencesSince } from '../../src/log/differences.ts';
import { isProblem } from '../../src/problem.ts';
import type { Plant } from '../../src/plants/plant.ts';
import { run, runOk } from '../support/command.ts';
import { listOf, openAgain, ownScene, rejectsWith, type Scene } from '../support/scene.ts';
import { seededRandom } from '../support/random.ts';
import { rounds, sizeOf } from '../support/rounds.ts';
import { it } from '../support/storages.ts';

/** A time after all changes until now, and before all later ones. */
async function moment(): Promise<string> {
  const beforeMs = Date.now();
  while (Date.now() <= beforeMs) await setImmediate();
  return localTime(Date.now());
}

interface Plan {
  undoSince: string;
  plants: { id: number; outcome: string; now?: object; before?: object }[];
}

/** Runs the command for a user of the scene. */
function restoreIn({ database, store }: Scene, user: string) {
  const command = ['user', 'restore', user, '--store', store, '--database', database.url];
  return async (since: string, ...more: string[]): Promise<Plan> => {
    const { status, stdout, stderr } = await run([...command, '--since', since, '--json', ...more]);
    assert.equal(stderr, '');
    const plan: Plan = JSON.parse(stdout);
    const isComplete = plan.plants.every(({ outcome }) => !outcome.includes('-'));
    assert.equal(status, isComplete || !more.includes('--yes') ? 0 : 1);
    return plan;
  };
}

async function scene(t: TestContext) {
  const opened = await ownScene(t);
  const [alice, bob, carol] = await opened.callers('alice', 'bob', 'carol');
  const { plants } = opened.storage;
  const create = (by: Caller, ...ids: readonly number[]) =>
    Promise.all(ids.map((id) => plants.create(by, { id, name: `plant ${id}`, tag: 'a' })));
  const own = (by: Caller): Promise<Plant[]> => listOf(opened.storage, { ...by, read: [by.user] });
  return { ...opened, alice, bob, carol, plants, create, own, restore: restoreIn(opened, 'alice') };
}

it('user restore puts back what happened since a time, and is undone by a later one', async (t) => {
  const { storage, alice, bob, carol, plants, create, own, restore, ...at } = await scene(t);
  const { store, database } = at;
  await create(alice, 1, 2, 3, 4, 5, 6);
  await create(bob, 10, 11, 12);
  await create(carol, 20);
  await plants.delete(alice, 6);
  const since = await moment();
  const [then, ofBob] = [await own(alice), await own(bob)];
  await plants.update(alice, 1, { name: 'first', tag: 'x' });
  await plants.update(alice, 1, { name: 'second' });
  await plants.delete(alice, 2);
  await plants.restore(alice, 6);
  await create(alice, 30, 31);
  await plants.delete(alice, 31);
  await plants.delete(alice, 3);
  await create(alice, 3);
  await plants.update(alice, 3, { name: 'another' });
  await plants.update(alice, 4, { name: 'changed' });
  await plants.update(alice, 4, { name: 'plant 4' });
  await plants.delete(alice, 5);
  await create(bob, 5);
  await storage.users.movePlants(carol, alice.user, 10);
  await plants.delete(bob, 12);
  await create(alice, 12);
  const changed = await own(alice);

  const plan = await restore(since);
  const outcomes = new Map(plan.plants.map(({ id, outcome }) => [id, outcome]));
  assert.deepEqual(
    outcomes,
    new Map([
      [1, 'updated'],
      [2, 'restored'],
      [6, 'deleted'],
      [30, 'deleted'],
      [3, 'updated'],
      [5, 'id-used-again'],
      [20, 'moved'],
      [12, 'deleted'],
    ]),
  );
  assert.deepEqual(plan.plants[0], {
    id: 1,
    outcome: 'updated',
    now: { name: 'second', tag: 'x' },
    before: { name: 'plant 1', tag: 'a' },
  });
  assert.deepEqual(await own(alice), changed, '--json without --yes changes nothing');

  const done = await restore(since, '--yes');
  assert.deepEqual(done.plants, plan.plants);
  assert.deepEqual(
    await own(alice),
    then.filter(({ id }) => id !== 5),
  );
  assert.deepEqual(await own(bob), [{ id: 5, name: 'plant 5', tag: 'a' }, ...ofBob.slice(0, 2)]);
  assert.equal((await own(carol)).length, 1);
  const again = await restore(since, '--yes');
  assert.deepEqual(
    again.plants.map(({ outcome }) => outcome),
    ['id-used-again'],
  );
  const { changes } = await storage.log.list({ store, limit: 1_000 });
  assert.deepEqual(
    changes.slice(-7).map(({ event, user }) => [event, user]),
    ['updated', 'restored', 'deleted', 'deleted', 'updated', 'deleted', 'moved'].map((e) => [
      e,
      undefined,
    ]),
  );

  await restore(done.undoSince, '--yes');
  assert.deepEqual(await own(alice), changed);
  assert.ok((await storage.log.history(alice, 2, 100))?.length === 4);
  await runOk(['verify', '--database', database.url]);
});

it('user restore changes many plants in batches, between the writes of others', async (t) => {
  const { alice, bob, plants, create, own, restore, other, database, store } = await scene(t);
  const ids = Array.from({ length: 1_200 }, (_, at) => at + 1);
  await create(alice, ...ids);
  const since = await moment();
  const then = await own(alice);
  await Promise.all(ids.map((id) => plants.delete(alice, id)));
  const args = ['--store', store, '--database', database.url, '--since', since];
  const command = ['user', 'restore', 'alice', ...args];
  const refused = await run(command);
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /no terminal to ask on\. Pass --yes to change 1200 plants\./);
  assert.deepEqual(await own(alice), []);
  let created = 0;
  const ended = new AbortController();
  const done = restore(since, '--yes').finally(() => ended.abort());
  for (; !ended.signal.aborted; created++) await other.plants.create(bob, { name: 'bob' });
  assert.ok((await done).plants.every(({ outcome }) => outcome === 'restored'));
  assert.deepEqual(await own(alice), then);
  assert.ok(created > 0, `${created} plants were created meanwhile`);
  await runOk(['verify', '--database', database.url]);
});

it('what is put back must be as it was shown, and counts for the quotas, which do not limit it', async (t) => {
  const { storage, database, alice, plants, create, own } = await scene(t);
  const counting = await openAgain(t, database, { quotas: { perStore: 3, perUser: undefined } });
  const add = (name: string) => counting.plants.create(alice, { name });
  await create(alice, 1, 2, 3);
  const since = await moment();
  await plants.update(alice, 1, { name: 'x' });
  await plants.delete(alice, 2);
  await plants.delete(alice, 3);
  const differences = await differencesSince(storage.log, alice, Date.parse(since), 1);
  await plants.update(alice, 1, { name: 'y' });
  await plants.restore(alice, 2);
  await add('one');
  const outcomes = await putBackAll(counting, alice, differences);
  assert.deepEqual(
    outcomes.map(({ outcome }) => outcome),
    ['changed-meanwhile', 'changed-meanwhile', 'restored'],
  );
  assert.deepEqual(
    (await own(alice)).map(({ name }) => name),
    ['y', 'plant 2', 'plant 3', 'one'],
  );
  await rejectsWith('quota-exceeded', add('two'));
});

it('user restore refuses a time of which the log lacks changes, and who was removed', async (t) => {
  const { alice, bob, plants, create, own, restore, storage, database, store } = await scene(t);
  await create(alice, 1, 2);
  await create(bob, 3);
  const early = await moment();
  await plants.delete(alice, 1);
  const later = await moment();
  await plants.delete(alice, 2);
  const { changes } = await storage.log.list({ store, limit: 1_000 });
  const { position, atMs = 0 } = changes.findLast(({ plant }) => plant === 1) ?? {};
  await database.run(`DELETE FROM changes WHERE position < ${position}`);
  const earliest = new Date(atMs + 1).toISOString();
  await assert.rejects(restore(early), new RegExp(`earliest possible time is ${earliest}`));
  assert.deepEqual(
    (await restore(later)).plants.map(({ id, outcome }) => [id, outcome]),
    [[2, 'restored']],
  );
  // Bob is removed, and becomes another person. Alice has his plant, which cannot be given back, nor can hers that he deleted.
  await create(bob, 5);
  await create(alice, 6);
  const before = await moment();
  await storage.users.movePlants(alice, bob.user, 10);
  await plants.delete(bob, 6);
  await storage.users.movePlants(bob, alice.user, 10);
  await storage.users.remove(bob, Date.now());
  const left = await restore(before, '--yes');
  assert.deepEqual(
    left.plants.map(({ id, outcome }) => [id, outcome]),
    [6, 3, 5].map((id) => [id, 'owner-removed']),
  );
  assert.equal((await own(alice)).length, 2);
  await storage.identity.createToken({
    store,
    user: 'bob',
    scopes: [],
    label: '',
    createdAtMs: 1,
  });
  assert.deepEqual(
    (await restoreIn({ storage, database, store } as Scene, 'bob')(before)).plants,
    [],
  );
});

it('user restore equals a model after random changes, while others write', (t) =>
  rounds(t, async (_round, seed) => {
    const { storage, other, database, caller, alice, bob, plants, own, restore } = await scene(t);
    const random = seededRandom(seed);
    const below = (end: number) => Math.floor(random() * end);
    const manager = await caller('maria', 'manager');
    const ids = 60;
    /** Of the last plant with each id. */
    const creators = new Map<number, Caller>();
    /** Changes a plant that the caller can change, if there is one. */
    const change = async (by: Caller) => {
      const [id, name] = [1 + below(ids), `name ${below(1_000)}`];
      const work = [
        () => plants.create(by, { id, name }).then(() => creators.set(id, by)),
        () => plants.update(by, id, { name, tag: `tag ${below(3)}` }),
        () => plants.delete(by, id),
        () => plants.restore(by, id),
      ][below(4)];
      await work?.().catch((error: unknown) =>
        assert.ok(isProblem(error, 'id-taken'), String(error)),
      );
    };
    /** Alice's plants by id, and what all others have. */
    const state = async () => {
      const all = await listOf(storage, { ...manager, read: 'all' });
      const hers = new Map((await own(alice)).map((plant) => [plant.id, plant]));
      return { hers, others: all.filter(({ id }) => !hers.has(id)) };
    };
    for (let at = 0; at < sizeOf({ usual: 2, long: 20 }); at++) {
      for (let count = 0; count < 60; count++) await change(below(4) === 0 ? bob : alice);
      const since = await moment();
      const { hers: before } = await state();
      for (let count = 0; count < 60; count++) await change([alice, alice, bob][below(3)] ?? alice);
      const { hers: changed, others } = await state();
      // Others write above the ids that change.
      const ended = new AbortController();
      const done = restore(since, '--yes').finally(() => ended.abort());
      while (!ended.signal.aborted) {
        const { id } = await other.plants.create(bob, { name: 'meanwhile' });
        await other.plants.delete(bob, id);
      }
      const { plants: outcomes, undoSince } = await done;
      const after = await state();
      // An id that bob has used is his, also once he has deleted that plant.
      const expected = [...before.values()].filter(({ id }) => creators.get(id) !== bob);
      assert.deepEqual([...after.hers.values()], expected);
      const left = outcomes.filter(({ outcome }) => outcome === 'id-used-again');
      assert.equal(left.length, before.size - expected.length);
      assert.deepEqual(after.others, others);
      await restore(undoSince, '--yes');
      assert.deepEqual((await state()).hers, changed);
      assert.match(await runOk(['verify', '--database', database.url]), /^ok/);
    }
  }));

test('a time is an age, or has the local offset or its own', (t) => {
  const { TZ } = process.env;
  t.after(() => {
    if (TZ === undefined) delete process.env['TZ'];
    else process.env['TZ'] = TZ;
  });
  for (const [zone, offset] of [
    ['Asia/Kolkata', '+05:30'],
    ['America/St_Johns', '-03:30'],
    ['UTC', '+00:00'],
  ] as const) {
    process.env['TZ'] = zone;
    const expected = Date.parse(`2026-01-20T00:00:00${offset}`);
    const midnight = '2026-01-20T00:00';
    for (const text of [
      midnight,
      `${midnight}:00`,
      `${midnight}:00${offset}`,
      '2026-01-20',
      '2026-01-20 00:00',
    ]) {
      assert.equal(parsePastMs(text), expected, `${text} in ${zone}`);
    }
    assert.equal(localTime(expected), `2026-01-20T00:00:00.000${offset}`);
  }
  assert.ok(Math.abs(Date.now() - 7_200_000 - parsePastMs('2h')) < 1_000);
  for (const wrong of [
    '',
    '2',
    'x',
    '2026-02-30T00:00',
    '2026-01-20T25:00',
    '2026-01-20T10',
    '20260120',
    '9999-01-01',
  ]) {
    assert.throws(() => parsePastMs(wrong), /Use a time in the past/);
  }
});
