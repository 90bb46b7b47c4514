import assert from 'node:assert/strict';
import { it } from 'node:test';
import { call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';

it('the limits of serve hold for each worker', async (t) => {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 1);
  const { address } = await serve(t, ['--database', url, '--workers', '2', '--rate-limit', '5/h']);
  let allowed = 0;
  for (let at = 0; at < 12; at++) {
    if ((await call(`${address}/plants`, 'GET', { token })).status === 200) allowed++;
  }
  assert.ok(allowed >= 5 && allowed <= 10, `${allowed} requests`);
});
