/**
 * The same as matrix.test.ts, with 100,000 questions for each storage. PLANT_STORE_TEST_SEED repeats a run.
 */
import assert from 'node:assert/strict';
import { agreeOnAccess } from './matrix.ts';
import { it } from './support/storages.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);
const minQuestions = 100_000;

it(`decides 100,000 times like a plain model (PLANT_STORE_TEST_SEED=${seed})`, async (t) => {
  const worlds = [
    { users: 10, plants: 24, states: 100 },
    { users: 90, plants: 80, states: 3 },
  ];
  const questions = await agreeOnAccess(t, worlds, { seed, explained: 5 });
  t.diagnostic(`${questions} questions, 0 differences`);
  assert.ok(questions >= minQuestions);
});
