/**
 * The same as power.test.ts, with more images and other failures.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { seededRandom } from '../support/random.ts';
import { firstSeed as seed, rounds } from '../support/rounds.ts';
import { faultsOf, machine, work, type Machine } from './power.test.ts';

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

// The first checkpoints are partial: readers are there, and nothing is synced. The first sync is to find them too.
it('a checkpoint with a failed sync ends the service, and loses no acknowledged change', async (t) => {
  const its = await machine(t);
  if (its === undefined) return;
  const failing = await its.serve({ POWER_CUT_FAIL: '.db:1' });
  await work(its, failing, 5_000, 16);
  assert.equal(await failing.ended, 3);
  const from = its.events().findIndex(({ kind }) => kind === 'F');
  assert.ok(from > 0, 'a checkpoint has failed');
  await restartAndCut(t, its, { seed, count: 20 });
  assert.deepEqual(await faultsOf(t, its, its.events(), { seed, count: 40, from }), []);
});

it('no acknowledged change is lost after a failed sync, a kill and a restart', async (t) => {
  const its = await machine(t);
  if (its === undefined) return;
  const before = await its.serve();
  await work(its, before, 60);
  await before.stop();
  // The first commit of a WAL, so that nothing else in it has the pages of the file that it changes.
  const killed = await its.serve({ POWER_CUT_FAIL: '-wal:2:0' });
  await work(its, killed, 200);
  assert.equal(await killed.ended, null);
  const { status, stderr } = await its.migrate({ POWER_CUT_FAIL: '-wal:1' });
  assert.equal(status, 3);
  assert.match(
    stderr,
    /^error: .*plants\.db-wal cannot be synced.* Keep the files, check the disk/,
  );
  await restartAndCut(t, its, { seed, count: 15 });
});

/**
 * Runs the service again and again, on a disk that fails most of the time, and ends it with and without
 * a kill. The disk of the last service is sound. Returns how each of them ended.
 */
async function live(its: Machine, services: number, random: () => number) {
  const below = (max: number) => Math.floor(random() * max);
  const ends: string[] = [];
  for (let left = services - 1; left >= 0; left--) {
    const [suffix, maxNth] =
      [
        ['-wal', 30],
        ['-wal', 2],
        ['.db', 2],
      ][below(3)] ?? [];
    const nth = 1 + below(Number(maxNth));
    const steps = [0, below(80), -1][below(3)]; // until the kill; -1 for none
    const fail = left > 0 && random() < 0.75 ? `${suffix}:${nth}:${steps}` : undefined;
    let end: number | string | null;
    try {
      const service = await its.serve(fail === undefined ? {} : { POWER_CUT_FAIL: fail });
      await work(its, service, 20 + below(40));
      end = await service.stop(random() < 0.5 ? 'SIGKILL' : 'SIGTERM');
    } catch (error) {
      // It was killed at the start, or refused to start.
      assert.match(String(error), /serve ended: ($|error: .* cannot be synced)/);
      end = 'not started';
    }
    assert.ok([0, 3, null, 'not started'].includes(end), `it ended with ${end}`);
    ends.push(`${fail ?? 'sound'} ${end ?? 'killed'}`);
  }
  return ends;
}

/** Starts the service once more, and cuts the power while it starts and serves. Nothing acknowledged is lost. */
async function restartAndCut(
  t: TestContext,
  its: Machine,
  cuts: { seed: number; count: number },
): Promise<void> {
  const from = its.events().length;
  const service = await its.serve();
  await work(its, service, 40);
  const events = its.events();
  // The start itself is when it is most delicate.
  assert.deepEqual(await faultsOf(t, its, events, { ...cuts, from, to: from + 40 }), []);
  assert.deepEqual(await faultsOf(t, its, events, { ...cuts, from }), []);
}
