import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import { startApp } from '../support/app.ts';
import { hang, hangInBody, startGateway } from '../support/gateway.ts';

it('a request without a whole response within 15 seconds is repeated if that is safe', async (t) => {
  const app = await startApp(t);
  const gateway = await startGateway(t, app.address);
  const store = new PlantStore({ url: gateway.address, token: await app.token('alice') });
  await store.create({ name: 'Ficus', id: 1 });
  gateway.plan.push(hang, hangInBody, hang);
  const listed = Array.fromAsync(store.list());
  await gateway.received(2);
  const found = store.get(1);
  await gateway.received(3);
  const lost = { kind: 'network', outcomeUnknown: true };
  await assert.rejects(store.create({ name: 'Aloe' }), lost);
  assert.deepEqual(
    [await listed, await found],
    [[{ name: 'Ficus', tag: '' }], { name: 'Ficus', tag: '' }],
  );
  const posts = gateway.requests.filter(({ line }) => line.startsWith('POST'));
  assert.equal(posts.length, 2);
  await Promise.all(gateway.requests.map(({ closed }) => closed));
});
