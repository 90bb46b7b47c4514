/**
 * The same as model.test.ts, for as long as one likes: PLANT_STORE_TEST_SEED repeats a run,
 * PLANT_STORE_TEST_REQUESTS sets the number of requests.
 */
import * as fc from 'fast-check';
import { agree, steps } from './model.ts';
import { startApp } from './support/app.ts';
import { it } from './support/storages.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);
const requests = Number(process.env['PLANT_STORE_TEST_REQUESTS'] ?? 100_000);
const requestsEach = 200;

it(`returns the response of the model for ${requests} requests (PLANT_STORE_TEST_SEED=${seed})`, async (t) => {
  const app = await startApp(t);
  const agrees = fc.asyncProperty(steps(requestsEach), (all) => agree(app, all));
  await fc.assert(agrees, { seed, numRuns: requests / requestsEach });
});
