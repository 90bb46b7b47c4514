/**
 * The tests of follow.ts, larger, and what takes long: a wait without a change, and an outage.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import { startApp } from '../support/app.ts';
import { cutBefore, startGateway } from '../support/gateway.ts';

await import('./follow.ts');

it('a request waits 25 seconds for a change, and following survives more failures than other calls', async (t) => {
  const app = await startApp(t);
  const gateway = await startGateway(t, app.address);
  const token = await app.token('alice');
  const store = new PlantStore({ url: gateway.address, token, timeoutMs: 5_000 });
  const batches = store.changes();
  await batches.next();
  const next = batches.next();
  await gateway.received(3); // after a wait without a change
  const [, waited, again] = gateway.requests.map(({ atMs }) => atMs);
  assert.ok(waited !== undefined && again !== undefined && again - waited > 24_000);
  gateway.plan.push(cutBefore, cutBefore, cutBefore, cutBefore, cutBefore);
  await new PlantStore({ url: app.address, token }).create({ name: 'Ficus' });
  assert.equal((await next).value.changes.length, 1);
  const failing = batches.next();
  await gateway.received(9);
  await new PlantStore({ url: app.address, token }).create({ name: 'Aloe' });
  assert.equal((await failing).value.changes.length, 1);
});
