import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { PlantStore } from '../../src/client/client.ts';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { hang, respond, startGateway } from '../support/gateway.ts';
import { browser } from '../web/store.ts';

/** Without an icon, the browser requests /favicon.ico. */
const html = '<!doctype html><link rel="icon" href="data:,">';

describe('in a browser without a bundler, the client', { skip: withoutBrowser }, () => {
  /** A client in a page of a gateway. It calls the gateway, or the service itself as another origin. */
  async function openClient(
    t: TestContext,
    { timeoutMs = 30_000, isCrossOrigin = false, corsOrigins = ['*'] } = {},
  ) {
    const app = await startApp(t, { corsOrigins });
    const gateway = await startGateway(t, app.address);
    gateway.plan.push(respond(200, html)); // unlike the page of the service, it can call other origins
    const { page, errors } = await openPage(await browser(), `${gateway.address}/`);
    t.after(() => page.context().close());
    const { address: url } = isCrossOrigin ? app : gateway;
    const options = { url, token: await app.token('alice'), timeoutMs };
    const store = await page.evaluateHandle(async (given) => {
      const path = '/client/client.ts';
      const client: { PlantStore: typeof PlantStore } = await import(path);
      return new client.PlantStore(given);
    }, options);
    return { gateway, store, errors };
  }

  it('creates, lists and deletes plants of another origin, and throws typed problems', async (t) => {
    const { store, errors } = await openClient(t, { isCrossOrigin: true });
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

  it('hints at --cors-origin if the browser refuses the response of another origin', async (t) => {
    const { store } = await openClient(t, { isCrossOrigin: true, corsOrigins: [] });
    const problem = await store.evaluate((client) =>
      client.create({ name: 'Ficus' }).catch((error: object) => ({ ...error })),
    );
    const kind = { kind: 'network', status: 0 };
    assert.partialDeepStrictEqual(problem, kind);
    assert.match(JSON.stringify(problem), /allow the pages of http:\S+ with --cors-origin\./);
  });

  it('repeats what is safe, and does not follow a redirect', async (t) => {
    const { store, gateway } = await openClient(t);
    // Chromium itself repeats a request if a connection that it reuses is cut, so this is an error of the gateway.
    gateway.plan.push(async (response, forward) => {
      await forward();
      response.writeHead(502).end();
    });
    const created = await store.evaluate((client) => client.create({ name: 'Ficus', id: 40 }));
    assert.deepEqual(created, {
      id: 40,
      plant: { name: 'Ficus', tag: '' },
      isReplay: true,
    });
    gateway.plan.push(respond(307, '', { location: '/plants/41' }));
    const problem = await store.evaluate((client) =>
      client.get(40).catch((error: object) => ({ ...error })),
    );
    assert.partialDeepStrictEqual(problem, { kind: 'unexpected-response', status: 0 });
    assert.ok(!gateway.requests.some(({ line }) => line.endsWith('/41')));
  });

  it('ends a call at its timeout, or with its signal', async (t) => {
    const { store, gateway } = await openClient(t, { timeoutMs: 500 });
    gateway.plan.push(hang, hang);
    const late = await store.evaluate((client) =>
      client.get(1).catch((error: object) => ({ ...error })),
    );
    assert.partialDeepStrictEqual(late, { kind: 'timeout', status: 0 });
    const aborted = await store.evaluate((client) =>
      client.get(1, { signal: AbortSignal.timeout(50) }).catch((error: Error) => error.name),
    );
    assert.equal(aborted, 'TimeoutError');
  });
});
