import { agreeOnAccess } from './matrix.ts';
import { rounds, sizeOf } from './support/rounds.ts';
import { it } from './support/storages.ts';

// The second has more owners than a page merges without a probe, and than it compares one by one.
const worlds = sizeOf({
  usual: [
    { users: 10, plants: 20, states: 4 },
    { users: 66, plants: 16, states: 1 },
  ],
  long: [
    { users: 10, plants: 24, states: 20 },
    { users: 90, plants: 80, states: 1 },
  ],
});

it('decides for every user, plant and operation like a plain model', (t) =>
  rounds(t, async (inner, seed) => {
    const questions = await agreeOnAccess(t, worlds, { seed, explained: 1 });
    inner.diagnostic(`${questions} questions, 0 differences`);
  }));
