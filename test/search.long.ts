import { it } from 'node:test';
import { agreeOnSearches } from './search.ts';
import { firstSeed } from './support/rounds.ts';

it('both storages find what a plain filter finds, for 10,000 texts and searches', async (t) => {
  await agreeOnSearches(t, { seed: firstSeed, plants: 10_000, searches: 10_000 });
});
