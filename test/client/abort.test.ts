import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import { startApp } from '../support/app.ts';
import { cutBefore, hang, hangInBody, respond, startGateway } from '../support/gateway.ts';

const reason = new Error('the user left');

async function setUp(t: TestContext, options: { timeoutMs?: number } = {}) {
  const app = await startApp(t);
  const gateway = await startGateway(t, app.address);
  const store = new PlantStore({
    url: gateway.address,
    token: await app.token('alice'),
    ...options,
  });
  const abort = new AbortController();
  const { signal } = abort;
  const calls = [
    () => store.create({ name: 'Ficus', id: 1 }, { signal }),
    () => store.get(1, { signal }),
    () => store.delete(1, { signal }),
    () => store.list({ signal }).next(),
    () => store.pages({ signal }).next(),
    () => store.token({ signal }),
  ];
  return { gateway, store, abort, signal, calls };
}

describe('a signal that aborts', () => {
  it('prevents every call', async (t) => {
    const { gateway, abort, calls } = await setUp(t);
    abort.abort(reason);
    for (const call of calls) await assert.rejects(call(), reason);
    assert.equal(gateway.requests.length, 0);
  });

  for (const [description, handler] of [
    ['the response', hang],
    ['the rest of the body', hangInBody],
  ] as const) {
    it(`ends every call that waits for ${description}, and its connection`, async (t) => {
      const { gateway, abort, signal, calls } = await setUp(t);
      gateway.plan.push(...calls.map(() => handler));
      const results = calls.map((call) => call());
      await gateway.received(calls.length);
      abort.abort(reason);
      for (const result of results) await assert.rejects(result, reason);
      await Promise.all(gateway.requests.map(({ closed }) => closed));
      assert.equal(getEventListeners(signal, 'abort').length, 0);
    });
  }

  it('ends a pause before a retry', async (t) => {
    const { gateway, abort, store, signal } = await setUp(t);
    gateway.plan.push(respond(503, '', { 'retry-after': '20' }));
    const result = store.get(1, { signal });
    await gateway.received(1);
    await gateway.requests[0]?.closed;
    abort.abort(reason);
    await assert.rejects(result, reason);
    assert.equal(gateway.requests.length, 1);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  it('ends a pause before a retry if it aborts just before it', async (t) => {
    const { gateway, abort, signal } = await setUp(t);
    const aborting = async () => {
      queueMicrotask(() => abort.abort(reason));
      return new Response('', { status: 503, headers: { 'retry-after': '20' } });
    };
    const store = new PlantStore({ url: gateway.address, token: 'any', fetch: aborting });
    await assert.rejects(store.get(1, { signal }), reason);
  });

  it('ends a list between two plants of a page', async (t) => {
    const { abort, store, signal } = await setUp(t);
    for (const name of ['a', 'b']) await store.create({ name });
    const names: string[] = [];
    const read = async () => {
      for await (const { name } of store.list({ signal })) {
        names.push(name);
        abort.abort(reason);
      }
    };
    await assert.rejects(read, reason);
    assert.deepEqual(names, ['a']);
  });

  it('throws an AbortError without a reason', async (t) => {
    const { abort, store, signal } = await setUp(t);
    abort.abort();
    await assert.rejects(store.token({ signal }), { name: 'AbortError' });
  });

  it('has no listeners left after a call', async (t) => {
    const { gateway, store, signal } = await setUp(t);
    gateway.plan.push(cutBefore);
    await store.token({ signal });
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });
});

describe('the timeout', () => {
  for (const [description, handler] of [
    ['there is no response', hang],
    ['the body does not end', hangInBody],
  ] as const) {
    it(`ends every call if ${description}`, async (t) => {
      const { gateway, calls } = await setUp(t, { timeoutMs: 300 });
      gateway.plan.push(...calls.map(() => handler));
      const [create, ...others] = calls.map((call) => call());
      const timeout = { kind: 'timeout', status: 0, detail: /300 ms/ };
      assert.ok(create);
      await assert.rejects(create, { ...timeout, outcomeUnknown: true });
      for (const call of others) await assert.rejects(call, timeout);
      assert.equal(gateway.requests.length, calls.length);
      await Promise.all(gateway.requests.map(({ closed }) => closed));
    });
  }

  it('can be set for a call, and goes with a signal', async (t) => {
    const { gateway, store, abort, signal } = await setUp(t);
    gateway.plan.push(hang, hang, hang); // a request can also be too late to arrive
    const late = { kind: 'timeout', detail: /within 50 ms/ };
    await assert.rejects(store.get(1, { timeoutMs: 50, signal }), late);
    await assert.rejects(store.list({ timeoutMs: 50 }).next(), late);
    const aborted = store.get(1, { timeoutMs: 20_000, signal });
    abort.abort(reason);
    await assert.rejects(aborted, reason);
    for (const timeoutMs of [0, 0.5, 2 ** 31]) {
      await assert.rejects(store.get(1, { timeoutMs }), {
        name: 'RangeError',
        message: /timeoutMs/,
      });
    }
  });

  it('says of a change that was sent that its outcome is unknown', async (t) => {
    const { gateway, store } = await setUp(t);
    gateway.plan.push(hang, hang, hang, hang);
    const unknown = { outcomeUnknown: true, message: /The change may or may not have been made\./ };
    const timeoutMs = 50;
    await assert.rejects(store.create({ name: 'Ficus' }, { timeoutMs }), unknown);
    await assert.rejects(store.delete(1, { timeoutMs }), unknown);
    await assert.rejects(store.share('bob', 'read', { timeoutMs }), unknown);
    const read = { outcomeUnknown: false, message: /within 50 ms\.$/ };
    await assert.rejects(store.get(1, { timeoutMs }), read);
  });
});
