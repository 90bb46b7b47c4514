/**
 * The same as power.test.ts, with more images and other failures.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { seededRandom } from '../support/random.ts';
import { firstSeed as seed, rounds } from '../support/rounds.ts';
import { faultsOf, live, machine, restartAndCut, work } from './power.ts';

it('many power cuts with failed syncs lose no acknowledged change', async (t) => {
  let noticed = 0;
  await rounds(t, async (inner, lifeSeed) => {
    const its = await machine(inner);
    if (its === undefined) return;
    const ends = await live(its, 5, seededRandom(lifeSeed));
    const events = its.events();
    inner.diagnostic(`${events.length} events, ${ends.join(', ')}`);
    const cuts = { seed: lifeSeed, count: 150, served: 2 };
    assert.deepEqual(await faultsOf(inner, its, events, cuts), []);
    const control = { seed: lifeSeed, count: 20, ignoresSyncs: true };
    noticed += (await faultsOf(inner, its, events, control)).length;
  });
  assert.ok(noticed > 0, 'a disk that ignores syncs is detected');
});

it('no acknowledged change is lost after a failed sync, a stop and a restart', async (t) => {
  const its = await machine(t);
  if (its === undefined) return;
  const failing = await its.serve({ POWER_CUT_FAIL: '-wal:20' });
  await work(its, failing, 200);
  assert.equal(await failing.ended, 3);
  await restartAndCut(t, its, { seed, count: 40 });
});

it('no acknowledged change is lost if the service continues after a file could not grow', async (t) => {
  const its = await machine(t);
  if (its === undefined) return;
  const limited = await its.serve({ POWER_CUT_LIMIT: '400000' });
  await work(its, limited, 120);
  assert.match(limited.log(), /"kind":"outcome-unknown"/);
  assert.equal(await limited.stop('SIGKILL'), null);
  await restartAndCut(t, its, { seed, count: 40 });
});

it('a checkpoint with a failed sync loses no acknowledged change', async (t) => {
  const its = await machine(t);
  if (its === undefined) return;
  // SQLite does not report such a failure, so the service continues.
  const service = await its.serve({ POWER_CUT_FAIL: '.db:1' });
  await work(its, service, 3_000, 16);
  await service.stop('SIGKILL');
  const again = await its.serve();
  await work(its, again, 50);
  const events = its.events();
  const from = events.findIndex(({ kind }) => kind === 'F');
  assert.ok(from > 0, 'a checkpoint has failed');
  assert.deepEqual(await faultsOf(t, its, events, { seed, count: 100, from }), []);
});
