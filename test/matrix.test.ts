import { agreeOnAccess } from './matrix.ts';
import { it } from './support/storages.ts';

const seed = Date.now() % 2 ** 31; // a failure prints it

it('decides for every user, plant and operation like a plain model', async (t) => {
  const worlds = [
    { users: 10, plants: 20, states: 4 },
    // More owners than a page merges without a probe, and than it compares one by one.
    { users: 66, plants: 16, states: 1 },
  ];
  const questions = await agreeOnAccess(t, worlds, { seed, explained: 1 });
  t.diagnostic(`${questions} questions, 0 differences`);
});
