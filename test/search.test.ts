import { it } from 'node:test';
import { agreeOnSearches } from './search.ts';
import { firstSeed } from './support/rounds.ts';

it('both storages find what a plain filter finds', async (t) => {
  await agreeOnSearches(t, { seed: firstSeed, plants: 1_500, searches: 300 });
});
