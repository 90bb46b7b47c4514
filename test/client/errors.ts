/**
 * What a failed call throws, and where the token is never sent.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PlantStore, PlantStoreError } from '../../src/client/client.ts';
import { respond, startGateway } from '../support/gateway.ts';
import { freePort } from '../support/postgres.ts';
import { connect } from './service.ts';

const html = '<html><h1>502 Bad Gateway</h1></html>';
const json = { 'content-type': 'application/json' };
const withoutRetries = { maxRetries: 0 };

async function errorOf(call: Promise<unknown>): Promise<PlantStoreError> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof PlantStoreError, String(error));
  return error;
}

describe('PlantStoreError', () => {
  it('has everything that the problem document has, and the request id', async (t) => {
    const { store } = await connect(t, withoutRetries);
    // @ts-expect-error: there is no such field
    const error = await errorOf(store.create({ name: '', tga: 'indoor' }));
    assert.equal(error.kind, 'invalid-request');
    assert.equal(error.type, '/problems/invalid-request');
    assert.equal(error.title, 'The request is not valid');
    assert.equal(error.status, 400);
    assert.match(error.detail, /2 errors/);
    assert.deepEqual(
      error.errors.map(({ pointer }) => pointer),
      ['/name', '/tga'],
    );
    assert.match(error.requestId ?? '', /^[0-9a-f-]{36}$/);
    assert.equal(error.retryAfterSeconds, undefined);
    assert.equal(error.outcomeUnknown, false);
    assert.equal(error.message, `invalid-request: ${error.detail}`);
    assert.equal(String(error), `PlantStoreError: ${error.message}`);
    const { errors } = await errorOf(store.pages({ after: -1 }).next());
    assert.deepEqual(
      errors.map(({ parameter }) => parameter),
      ['after'],
    );
  });

  it('has a kind that the client does not know', async (t) => {
    const { plan, store } = await connect(t, withoutRetries);
    for (const type of ['/problems/new-kind', 'https://plants.example/prefix/problems/new-kind']) {
      const problem = JSON.stringify({ type, title: 'New', status: 418, detail: 'See there.' });
      plan.push(respond(418, problem, { 'content-type': 'application/problem+json' }));
      const error = await errorOf(store.get(1));
      assert.deepEqual([error.kind, error.type, error.status], ['new-kind', type, 418]);
    }
  });

  it('is an unexpected response for what is not from the service', async (t) => {
    const { plan, store } = await connect(t, withoutRetries);
    for (const [description, status, body, headers] of [
      ['an HTML page of a proxy', 502, html, undefined],
      ['an HTML page of a captive portal', 200, html, undefined],
      ['an error of another API', 404, '{"error":"not found"}', json],
      ['a request that a proxy keeps for later', 202, '{"name":"Ficus","tag":""}', json],
      ['JSON that is cut off', 500, '{"type":"a', json],
      ['nothing', 503, '', {}],
    ] as const) {
      for (const call of [
        () => store.create({ name: 'Ficus' }),
        () => store.get(1),
        () => store.delete(1),
        () => store.list().next(),
        () => store.token(),
      ]) {
        plan.push(respond(status, body, headers));
        const error = await errorOf(call());
        const expected = ['unexpected-response', 'about:blank', status];
        assert.deepEqual([error.kind, error.type, error.status], expected, description);
      }
    }
  });

  it('is an unexpected response if JSON is not what it should be', async (t) => {
    const { gateway, store } = await connect(t, withoutRetries);
    gateway.plan.push(respond(200, '{}', json));
    assert.equal((await errorOf(store.list().next())).kind, 'unexpected-response');
    gateway.plan.push(respond(201, '{}', json)); // without Location
    const error = await errorOf(store.create({ name: 'Ficus' }));
    assert.deepEqual([error.kind, error.outcomeUnknown], ['unexpected-response', true]);
    gateway.plan.push(respond(200, '{}', json)); // without ETag
    assert.equal((await errorOf(store.getWithETag(1))).kind, 'unexpected-response');
    for (const link of ['</plants?limit=1000>; rel="next"', '<http://[>; rel=next']) {
      gateway.plan.push(respond(200, '[]', { ...json, link }));
      assert.equal((await errorOf(store.list().next())).kind, 'unexpected-response');
    }
  });

  it('is of the kind network if nothing listens, and its cause says so', async (t) => {
    const port = await freePort();
    const { token } = await connect(t, withoutRetries);
    const store = new PlantStore({ url: `http://127.0.0.1:${port}`, token, maxRetries: 0 });
    const error = await errorOf(store.create({ name: 'Ficus' }));
    assert.deepEqual([error.kind, error.status, error.outcomeUnknown], ['network', 0, true]);
    assert.ok(error.detail.includes(`127.0.0.1:${port}`));
    assert.ok(error.cause instanceof TypeError);
    assert.equal((await errorOf(store.get(1))).outcomeUnknown, false);
  });
});

describe('the token', () => {
  it('is not sent to another address by a redirect', async (t) => {
    const { app, gateway, store } = await connect(t, withoutRetries);
    const other = await startGateway(t, app.address);
    for (const [status, target] of [
      [301, `${other.address}/plants`],
      [307, `${other.address}/plants`],
      [308, '/plants?limit=1'],
    ] as const) {
      gateway.plan.push(respond(status, '', { location: target }));
      const error = await errorOf(store.create({ name: 'Ficus' }));
      assert.deepEqual([error.kind, error.status], ['unexpected-response', status]);
      assert.match(error.detail, /redirects/);
    }
    assert.equal(other.requests.length, 0);
    assert.equal(gateway.requests.length, 3);
  });

  it('is not sent to another origin by Link, and the next page is still found', async (t) => {
    const { app, gateway, store } = await connect(t, withoutRetries);
    const other = await startGateway(t, app.address);
    for (const name of ['a', 'b', 'c']) await store.create({ name });
    const link = `<${other.address}/elsewhere?limit=2&after=1>; rel="next"`;
    gateway.plan.push(respond(200, '[{"name":"a"}]', { ...json, link }));
    const names = await Array.fromAsync(store.list({ fields: ['name'] }), ({ name }) => name);
    assert.deepEqual(names, ['a', 'b', 'c']);
    assert.equal(gateway.requests.at(-1)?.line, 'GET /plants?limit=2&after=1');
    assert.equal(other.requests.length, 0);
  });
});
