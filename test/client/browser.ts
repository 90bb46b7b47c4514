/**
 * The client in a browser, without a bundler.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { PlantStore, verifyWebhook } from '../../src/client/index.ts';
import { startApp } from '../support/app.ts';
import { openPage } from '../support/browser.ts';
import { hang, respond, startGateway } from '../support/gateway.ts';
import { browser, inBrowser } from '../web/store.ts';

/** Without an icon, the browser requests /favicon.ico. */
const html = '<!doctype html><link rel="icon" href="data:,">';

/** A page of a gateway, the service behind it, and clients of either or of another service. */
async function openGateway(t: TestContext) {
  const app = await startApp(t);
  const gateway = await startGateway(t, app.address);
  gateway.plan.push(respond(200, html)); // unlike the page of the service, it can call other origins
  const { page, errors } = await openPage(await browser(), `${gateway.address}/`);
  t.after(() => page.context().close());
  const clientOf = (url: string, token: string, timeoutMs = 30_000) =>
    page.evaluateHandle(
      async (given) => {
        const path = '/client/client.ts';
        const client: { PlantStore: typeof PlantStore } = await import(path);
        return new client.PlantStore(given);
      },
      { url, token, timeoutMs },
    );
  return { app, gateway, page, errors, clientOf };
}

inBrowser('a page of an allowed origin calls the service, and reads its problems', async (t) => {
  const { gateway, page, errors, clientOf } = await openGateway(t);
  for (const allowed of [gateway.address, '*']) {
    const app = await startApp(t, { corsOrigins: [allowed] });
    const store = await clientOf(app.address, await app.token('alice'), 900);
    const ficus = { name: 'Ficus', tag: '🌵' };
    errors.length = 0;
    const created = await store.evaluate((client, plant) => client.create(plant), ficus);
    assert.deepEqual(created, { id: 1, plant: ficus, isReplay: false });
    await store.evaluate((client) => client.create({ name: 'Aloe' }));
    const listed = await store.evaluate((client) =>
      Array.fromAsync(client.list({ pageSize: 1, fields: ['id'] })),
    );
    assert.deepEqual(listed, [{ id: 1 }, { id: 2 }]);
    assert.equal((await store.evaluate((client) => client.token())).user, 'alice');
    const kept = await store.evaluate(async (client) => {
      const stop = new AbortController();
      const mirror = await client.mirror({ fields: ['id'], signal: stop.signal });
      await client.delete(1);
      await mirror.until();
      stop.abort();
      return [...mirror.plants.values()];
    });
    assert.deepEqual(kept, [{ id: 2 }]);
    assert.deepEqual(errors, []);
    const problemOf = () =>
      store.evaluate((client) => client.get(1).catch((error: object) => ({ ...error })));
    const problem = await problemOf();
    const name = 'PlantStoreError';
    assert.partialDeepStrictEqual(problem, { name, kind: 'plant-not-found', status: 404 });
    assert.match(JSON.stringify(problem), /"requestId":"[0-9a-f-]{36}"/);
    const challenge = await page.evaluate(async (url) => {
      const response = await fetch(url, { headers: { authorization: 'Bearer plant_0' } });
      return [response.status, response.headers.get('www-authenticate')];
    }, `${app.address}/plants`);
    assert.deepEqual(challenge, [401, 'Bearer error="invalid_token"']);
    await app.database.run('ALTER TABLE plants RENAME TO gone');
    assert.partialDeepStrictEqual(await problemOf(), { status: 503, retryAfterSeconds: 1 });
  }
});

inBrowser('a page verifies a webhook', async (t) => {
  const { page } = await openGateway(t);
  const [secret, sentAt, body] = [
    `whsec_${btoa('a secret')}`,
    new Date(),
    '{"type":"webhook.test"}',
  ];
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1_000)),
    'webhook-signature': new Webhook(secret).sign('msg_1', sentAt, body),
  };
  const verify = (text: string) =>
    page.evaluate(
      async (given) => {
        const path = '/client/index.ts';
        const client: { verifyWebhook: typeof verifyWebhook } = await import(path);
        const content = client.verifyWebhook(given.headers, given.text, given.secret);
        return content.then(JSON.stringify, String);
      },
      { headers, text, secret },
    );
  assert.equal(await verify(body), body);
  assert.match(await verify('{}'), /^WebhookError: No signature is valid/);
});

inBrowser('a page of another origin reads and changes nothing', async (t) => {
  const { app: behind, errors, clientOf } = await openGateway(t);
  const other = await startApp(t, { corsOrigins: ['https://garden.example'] });
  for (const { address, token, call } of [behind, other]) {
    const alice = await token('alice');
    const store = await clientOf(address, alice);
    const problem = await store.evaluate((client) =>
      client.create({ name: 'Ficus' }).catch((error: object) => ({ ...error })),
    );
    assert.partialDeepStrictEqual(problem, { kind: 'network', status: 0 });
    assert.match(JSON.stringify(problem), /allow the pages of http:\S+ with --cors-origin\./);
    assert.deepEqual((await call('GET', '/plants', { token: alice })).json, []);
  }
  assert.match(errors.join('\n'), /has been blocked by CORS policy/);
});

inBrowser('the client repeats what is safe, follows no redirect, and ends in time', async (t) => {
  const { app, gateway, clientOf } = await openGateway(t);
  const token = await app.token('alice');
  const store = await clientOf(gateway.address, token, 500);
  const get = () =>
    store.evaluate((client) => client.get(40).catch((error: object) => ({ ...error })));
  // Chromium itself repeats a request if a connection that it reuses is cut, so this is an error of the gateway.
  gateway.plan.push(async (response, forward) => {
    await forward();
    response.writeHead(502).end();
  });
  const patient = await clientOf(gateway.address, token);
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
});
