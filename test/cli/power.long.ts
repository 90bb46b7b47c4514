/**
 * The same as power.test.ts, with more images: PLANT_STORE_TEST_SEED repeats a run as far as a seed can,
 * PLANT_STORE_TEST_IMAGES sets the number of images.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { seededRandom } from '../support/random.ts';
import { faultsOf, live, machine, work } from './power.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);
const images = Number(process.env['PLANT_STORE_TEST_IMAGES'] ?? 3_000);
const imagesEach = 150;
const lives = Math.ceil(images / imagesEach);

it(`${images} power cuts with failed syncs lose no acknowledged change (PLANT_STORE_TEST_SEED=${seed})`, async (t) => {
  let noticed = 0;
  for (let life = 0; life < lives; life++) {
    const its = await machine(t);
    if (its === undefined) return;
    const lifeSeed = seed + life;
    const ends = await live(its, 5, seededRandom(lifeSeed));
    const events = its.events();
    t.diagnostic(`seed ${lifeSeed}: ${events.length} events, ${ends.join(', ')}`);
    const cuts = { seed: lifeSeed, count: imagesEach, served: 2 };
    assert.deepEqual(await faultsOf(t, its, events, cuts), []);
    const control = { seed: lifeSeed, count: 5, ignoresSyncs: true };
    noticed += (await faultsOf(t, its, events, control)).length;
  }
  assert.ok(noticed > lives, 'a disk that ignores syncs is detected');
  t.diagnostic(
    `${images} images, 0 faults; of ${5 * lives} without syncs, ${noticed} lost something`,
  );
});

it(`a checkpoint with a failed sync loses no acknowledged change (PLANT_STORE_TEST_SEED=${seed})`, async (t) => {
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
