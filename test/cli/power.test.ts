/**
 * The power fails at random moments, and nothing that was acknowledged is lost.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { firstSeed as seed } from '../support/rounds.ts';
import { faultsOf, machine, work } from './power.ts';

it(`no acknowledged change is lost (PLANT_STORE_TEST_SEED=${seed})`, async (t) => {
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
