/**
 * The power fails at random moments, and nothing that was acknowledged is lost.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstSeed as seed } from '../support/rounds.ts';
import { faultsOf, machine, restartAndCut, work } from './power.ts';

// At once, because most of it is waiting.
describe(`after a power cut (PLANT_STORE_TEST_SEED=${seed})`, { concurrency: true }, () => {
  it('no acknowledged change is lost', async (t) => {
    const its = await machine(t);
    if (its === undefined) return;
    const service = await its.serve();
    await work(its, service, 60);
    assert.equal(await service.stop(), 0);
    const events = its.events();
    assert.deepEqual(await faultsOf(t, its, events, { seed, count: 30, served: 1 }), []);

    const control = await faultsOf(t, its, events, { seed, count: 20, ignoresSyncs: true });
    assert.ok(control.length > 0, 'a disk that ignores syncs is detected');
    t.diagnostic(`30 images, 0 faults; of 20 without syncs, ${control.length} lost something`);
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
});
