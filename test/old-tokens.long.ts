import { describe, test } from 'node:test';
import { assertKept, oldPostgres, upgradeSteps } from './old-tokens.ts';

// An upgrade waits 13 seconds for older versions, so they run at the same time.
describe('tokens of older versions', { concurrency: true }, () => {
  for (let steps = 0; steps <= upgradeSteps.length; steps++) {
    test(`are kept on PostgreSQL if an upgrade is killed after ${steps} statements`, async (t) =>
      assertKept(await oldPostgres(t, steps)));
  }
});
