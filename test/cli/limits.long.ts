import assert from 'node:assert/strict';
import { it } from 'node:test';
import { start } from './limits.ts';

it('the limits of serve hold for each worker', async (t) => {
  const { token, ask, service } = await start(t, ['--workers', '2', '--rate-limit', '5/h']);
  const statuses: number[] = [];
  for (let at = 0; at < 12; at++) statuses.push((await ask(token)).status);
  const allowed = statuses.filter((status) => status === 200).length;
  assert.ok(allowed === 5 || (allowed > 5 && allowed <= 10), `${allowed} requests`);
  assert.equal(await service.stop(), 0);
});
