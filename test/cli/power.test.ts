/**
 * The power fails at random moments, and nothing that was acknowledged is lost.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { faultsOf, machine, work, type Machine } from './power.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);

// At once, because most of it is waiting.
describe(`after a power cut (PLANT_STORE_TEST_SEED=${seed})`, { concurrency: true }, () => {
  it('no acknowledged change is lost', async (t) => {
    const its = await machine(t);
    if (its === undefined) return;
    for (let round = 0; round < 2; round++) {
      const service = await its.serve();
      await work(its, service, 60);
      assert.equal(await service.stop(), 0);
    }
    const events = its.events();
    const cuts = { seed, count: 60, served: 1 };
    assert.deepEqual(await faultsOf(t, its, events, cuts), []);

    const control = await faultsOf(t, its, events, { seed, count: 20, ignoresSyncs: true });
    assert.ok(control.length > 0, 'a disk that ignores syncs is detected');
    t.diagnostic(`60 images, 0 faults; of 20 without syncs, ${control.length} lost something`);
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
    await restartAndCut(t, its);
  });

  it('no acknowledged change is lost after a failed sync, a stop and a restart', async (t) => {
    const its = await machine(t);
    if (its === undefined) return;
    const failing = await its.serve({ POWER_CUT_FAIL: '-wal:20' });
    await work(its, failing, 200);
    assert.equal(await failing.ended, 3);
    await restartAndCut(t, its);
  });

  it('no acknowledged change is lost if the service continues after a file could not grow', async (t) => {
    const its = await machine(t);
    if (its === undefined) return;
    const limited = await its.serve({ POWER_CUT_LIMIT: '400000' });
    await work(its, limited, 120);
    assert.match(limited.log(), /"kind":"outcome-unknown"/);
    assert.equal(await limited.stop('SIGKILL'), null);
    await restartAndCut(t, its);
  });
});

async function restartAndCut(t: TestContext, its: Machine): Promise<void> {
  const from = its.events().length;
  const service = await its.serve();
  await work(its, service, 40);
  const events = its.events();
  // The start itself is when it is most delicate.
  const whileStarting = { seed, count: 40, from, to: from + 40 };
  assert.deepEqual(await faultsOf(t, its, events, whileStarting), []);
  assert.deepEqual(await faultsOf(t, its, events, { seed, count: 40, from }), []);
}
