import { it, testDatabase } from '../support/storages.ts';
import { createsOnce } from './repeated-creates.ts';

const seed = Math.floor(Math.random() * 2 ** 32);

it('1,000 creates that are sent twice, through processes that die, create 1,000 plants', async (t) => {
  await createsOnce(t, (await testDatabase(t)).url, 1_000, seed);
});
