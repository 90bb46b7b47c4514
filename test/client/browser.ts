/**
 * The client in a browser, without a bundler.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { PlantStore } from '../../src/client/client.ts';
import { startApp } from '../support/app.ts';
import { openPage } from '../support/browser.ts';
import { hang, respond, startGateway } from '../support/gateway.ts';
import { browser, inBrowser } from '../web/store.ts';

/** Without an icon, the browser requests /favicon.ico. */
const html = '<!doctype html><link rel="icon" href="data:,">';

/** A service that allows the pages of these origins, and a page of a gateway with clients of either. */
async function openClients(t: TestContext, corsOrigins: readonly string[]) {
  const app = await startApp(t, { corsOrigins });
  const gateway = await startGateway(t, app.address);
  gateway.plan.push(respond(200, html)); // unlike the page of the service, it can call other origins
  const { page, errors } = await openPage(await browser(), `${gateway.address}/`);
  t.after(() => page.context().close());
  const token = await app.token('alice');
  const clientOf = (url: string, timeoutMs = 30_000) =>
    page.evaluateHandle(
      async (given) => {
        const path = '/client/client.ts';
        const client: { PlantStore: typeof PlantStore } = await import(path);
        return new client.PlantStore(given);
      },
      { url, token, timeoutMs },
    );
  return { app, gateway, errors, clientOf };
}

inBrowser('the client calls another origin in a browser, and throws typed problems', async (t) => {
  const { app, errors, clientOf } = await openClients(t, ['*']);
  const store = await clientOf(app.address);
  const ficus = { name: 'Ficus', tag: '🌵' };
  const created = await store.evaluate((client, plant) => client.create(plant), ficus);
  assert.deepEqual(created, { id: 1, plant: ficus, isReplay: false });
  await store.evaluate((client) => client.create({ name: 'Aloe' }));
  const listed = await store.evaluate((client) =>
    Array.fromAsync(client.list({ pageSize: 1, fields: ['id'] })),
  );
  assert.deepEqual(listed, [{ id: 1 }, { id: 2 }]);
  assert.equal((await store.evaluate((client) => client.token())).user, 'alice');
  await store.evaluate((client) => client.delete(1));
  assert.deepEqual(errors, []);
  const problem = await store.evaluate((client) =>
    client.get(1).catch((error: object) => ({ ...error })),
  );
  const name = 'PlantStoreError';
  assert.partialDeepStrictEqual(problem, { name, kind: 'plant-not-found', status: 404 });
  assert.match(JSON.stringify(problem), /"requestId":"[0-9a-f-]{36}"/);
});

inBrowser('the client repeats what is safe, follows no redirect, and ends in time', async (t) => {
  const { app, gateway, clientOf } = await openClients(t, []);
  const store = await clientOf(gateway.address, 500);
  const get = () =>
    store.evaluate((client) => client.get(40).catch((error: object) => ({ ...error })));
  // Chromium itself repeats a request if a connection that it reuses is cut, so this is an error of the gateway.
  gateway.plan.push(async (response, forward) => {
    await forward();
    response.writeHead(502).end();
  });
  const patient = await clientOf(gateway.address);
  const created = await patient.evaluate((client) => client.create({ name: 'Ficus', id: 40 }));
  assert.deepEqual(created, { id: 40, plant: { name: 'Ficus', tag: '' }, isReplay: true });
  gateway.plan.push(respond(307, '', { location: '/plants/41' }));
  const redirected = { kind: 'unexpected-response', status: 0 };
  assert.partialDeepStrictEqual(await get(), redirected);
  assert.ok(!gateway.requests.some(({ line }) => line.endsWith('/41')));

  gateway.plan.push(hang, hang);
  assert.partialDeepStrictEqual(await get(), { kind: 'timeout', status: 0 });
  const aborted = await store.evaluate((client) =>
    client.get(40, { signal: AbortSignal.timeout(50) }).catch((error: Error) => error.name),
  );
  assert.equal(aborted, 'TimeoutError');

  // The service does not allow the page of the gateway.
  const other = await clientOf(app.address);
  const refused = await other.evaluate((client) =>
    client.create({ name: 'Ficus' }).catch((error: object) => ({ ...error })),
  );
  assert.partialDeepStrictEqual(refused, { kind: 'network', status: 0 });
  assert.match(JSON.stringify(refused), /allow the pages of http:\S+ with --cors-origin\./);
});
