/**
 * The power fails at random moments, and nothing that was acknowledged is lost.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { faultsOf, machine, work } from './power.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);

it(`a power cut loses nothing that was acknowledged (PLANT_STORE_TEST_SEED=${seed})`, async (t) => {
  const its = await machine(t);
  if (its === undefined) return;
  for (let round = 0; round < 2; round++) {
    const service = await its.serve();
    await work(its, service, 60);
    assert.equal(await service.stop(), 0);
  }
  const events = its.events();
  assert.deepEqual(await faultsOf(t, its, events, { seed, count: 60 }), []);

  const control = await faultsOf(t, its, events, { seed, count: 20, ignoresSyncs: true });
  assert.ok(control.length > 0, 'a disk that ignores syncs is noticed');
  t.diagnostic(`60 images, 0 faults; of 20 without syncs, ${control.length} lost something`);
});

// Nothing that was acknowledged is behind the gap that the failed sync left in the WAL.
const faults = {
  'a sync that fails and a kill right after it': '-wal:20:0',
  'a sync that fails and the end of the service': '-wal:20',
};
for (const [what, fail] of Object.entries(faults)) {
  it(`${what}, a restart and a power cut lose nothing (PLANT_STORE_TEST_SEED=${seed})`, async (t) => {
    const its = await machine(t);
    if (its === undefined) return;
    const failing = await its.serve(fail);
    await work(its, failing, 200);
    const isKilled = fail.endsWith(':0');
    assert.equal(await failing.ended, isKilled ? null : 3);
    const from = its.events().length;
    if (isKilled) {
      const { status, stderr } = await its.migrate('-wal:1');
      assert.equal(status, 3);
      assert.match(
        stderr,
        /^error: .*plants\.db-wal cannot be put on disk.* Look at the disk, keep/,
      );
    }
    const service = await its.serve();
    await work(its, service, 40);
    assert.deepEqual(await faultsOf(t, its, its.events(), { seed, count: 60, from }), []);
  });
}
