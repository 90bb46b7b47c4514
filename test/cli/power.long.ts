/**
 * The same as power.test.ts, with more images: PLANT_STORE_TEST_SEED repeats a run as far as a seed can,
 * PLANT_STORE_TEST_IMAGES says how many images.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { randomBy } from '../support/disk.ts';
import { faultsOf, live, machine } from './power.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);
const images = Number(process.env['PLANT_STORE_TEST_IMAGES'] ?? 3_000);
const imagesEach = 150;
const lives = Math.ceil(images / imagesEach);

it(`${images} power cuts lose nothing, whatever syncs fail (PLANT_STORE_TEST_SEED=${seed})`, async (t) => {
  let noticed = 0;
  for (let life = 0; life < lives; life++) {
    const its = await machine(t);
    if (its === undefined) return;
    const lifeSeed = seed + life;
    const ends = await live(its, 5, randomBy(lifeSeed));
    const events = its.events();
    t.diagnostic(`seed ${lifeSeed}: ${events.length} events, ${ends.join(', ')}`);
    const cuts = { seed: lifeSeed, count: imagesEach, served: 2 };
    assert.deepEqual(await faultsOf(t, its, events, cuts), []);
    const control = { seed: lifeSeed, count: 5, ignoresSyncs: true };
    noticed += (await faultsOf(t, its, events, control)).length;
  }
  assert.ok(noticed > lives, 'a disk that ignores syncs is noticed');
  t.diagnostic(
    `${images} images, 0 faults; of ${5 * lives} without syncs, ${noticed} lost something`,
  );
});
