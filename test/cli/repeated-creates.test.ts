import { it, testDatabase } from '../support/storages.ts';
import { createsOnce } from './repeated-creates.ts';

it('creates that are sent twice, through processes that die, create each plant once', async (t) => {
  await createsOnce(t, (await testDatabase(t)).url, 150, 1);
});
