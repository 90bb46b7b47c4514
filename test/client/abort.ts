/**
 * What ends a call early: a signal, and the timeout.
 */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import { cutBefore, hang, hangInBody, respond } from '../support/gateway.ts';
import { connect } from './service.ts';

const reason = new Error('the user left');
const incomplete = { 'the response': hang, 'the rest of the body': hangInBody };

async function setUp(t: TestContext, options: { timeoutMs?: number } = {}) {
  const connected = await connect(t, options);
  const { store } = connected;
  const abort = new AbortController();
  const { signal } = abort;
  const writes = [
    () => store.create({ name: 'Ficus', id: 1 }, { signal }),
    () => store.delete(1, { signal }),
    () => store.share('bob', 'read', { signal }),
  ];
  const reads = [
    () => store.get(1, { signal }),
    () => store.list({ signal }).next(),
    () => store.listDeleted({ signal }).next(),
    () => store.token({ signal }),
  ];
  const calls = [...writes, ...reads];
  /** Nothing listens to the signal after a call. */
  const assertReleased = () => assert.equal(getEventListeners(signal, 'abort').length, 0);
  return { ...connected, abort, signal, writes, reads, calls, assertReleased };
}

describe('a signal that aborts', () => {
  it('prevents every call', async (t) => {
    const { store, requests, abort, calls } = await setUp(t);
    abort.abort(reason);
    for (const call of calls) await assert.rejects(call(), reason);
    await assert.rejects(store.token({ signal: AbortSignal.abort() }), { name: 'AbortError' });
    assert.equal(requests.length, 0);
  });

  for (const [description, handler] of Object.entries(incomplete)) {
    it(`ends every call that waits for ${description}, and its connection`, async (t) => {
      const { gateway, abort, calls, assertReleased } = await setUp(t);
      gateway.plan.push(...calls.map(() => handler));
      const results = calls.map((call) => call());
      await gateway.received(calls.length);
      abort.abort(reason);
      for (const result of results) await assert.rejects(result, reason);
      await Promise.all(gateway.requests.map(({ closed }) => closed));
      assertReleased();
    });
  }

  it('ends a pause before a retry', async (t) => {
    const { gateway, abort, store, signal, assertReleased } = await setUp(t);
    gateway.plan.push(respond(503, '', { 'retry-after': '20' }));
    const result = store.get(1, { signal });
    await gateway.received(1);
    await gateway.requests[0]?.closed;
    abort.abort(reason);
    await assert.rejects(result, reason);
    assert.equal(gateway.requests.length, 1);
    assertReleased();
  });

  it('ends a pause before a retry if it aborts just before it', async () => {
    const abort = new AbortController();
    const aborting = async () => {
      queueMicrotask(() => abort.abort(reason));
      return new Response('', { status: 503, headers: { 'retry-after': '20' } });
    };
    const store = new PlantStore({ url: 'http://127.0.0.1', token: 'any', fetch: aborting });
    await assert.rejects(store.get(1, { signal: abort.signal }), reason);
  });

  it('ends a call while `beforeRetry` waits', async (t) => {
    const abort = new AbortController();
    const beforeRetry = () => {
      abort.abort(reason);
      return new Promise<void>(() => {});
    };
    const { store, plan } = await connect(t, { beforeRetry });
    plan.push(cutBefore);
    await assert.rejects(store.get(1, { signal: abort.signal }), reason);
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
});

describe('the timeout', () => {
  it('ends every call without a whole response, and says if a change may have been made', async (t) => {
    const endAll = async (handler: typeof hang) => {
      const { plan, requests, writes, reads } = await setUp(t, { timeoutMs: 3_000 });
      plan.push(...[...writes, ...reads].map(() => handler));
      const timeout = { kind: 'timeout', status: 0, detail: /3000 ms/ };
      const unknown = { ...timeout, outcomeUnknown: true, message: /The change may or may not/ };
      const known = { ...timeout, outcomeUnknown: false, message: /within 3000 ms\.$/ };
      await Promise.all([
        ...writes.map((call) => assert.rejects(call, unknown)),
        ...reads.map((call) => assert.rejects(call, known)),
      ]);
      assert.equal(requests.length, writes.length + reads.length);
      await Promise.all(requests.map(({ closed }) => closed));
    };
    await Promise.all(Object.values(incomplete).map(endAll));
  });

  it('can be set for a call, and goes with a signal', async (t) => {
    const { plan, store, abort, signal, assertReleased } = await setUp(t);
    plan.push(cutBefore);
    await store.token({ signal });
    assertReleased();
    plan.push(hang, hang, hang); // a request can also be too late to arrive
    const late = { kind: 'timeout', detail: /within 50 ms/ };
    await assert.rejects(store.get(1, { timeoutMs: 50, signal }), late);
    await assert.rejects(store.list({ timeoutMs: 50 }).next(), late);
    const aborted = store.get(1, { timeoutMs: 20_000, signal });
    abort.abort(reason);
    await assert.rejects(aborted, reason);
    for (const timeoutMs of [0, 0.5, 2 ** 31]) {
      const message = /timeoutMs/;
      await assert.rejects(store.get(1, { timeoutMs }), { name: 'RangeError', message });
    }
  });
});
