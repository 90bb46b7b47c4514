import assert from 'node:assert/strict';
import { agreeOnAccess } from './matrix.ts';
import { rounds } from './support/rounds.ts';
import { it } from './support/storages.ts';

it('decides like a plain model in many states', async (t) => {
  const worlds = [
    { users: 10, plants: 24, states: 20 },
    { users: 90, plants: 80, states: 1 },
  ];
  await rounds(t, async (inner, seed) => {
    const questions = await agreeOnAccess(t, worlds, { seed, explained: 2 });
    inner.diagnostic(`${questions} questions, 0 differences`);
    assert.ok(questions > 20_000);
  });
});
