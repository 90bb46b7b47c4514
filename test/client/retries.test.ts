import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { PlantStore, type PlantStoreOptions } from '../../src/client/client.ts';
import {
  outcomeUnknown,
  Problem,
  storageFull,
  storageUnavailable,
  tooManyWrites,
} from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { limitedTo, override, startApp, type TokenOptions } from '../support/app.ts';
import { cutAfter, cutBefore, respond, startGateway, type Handler } from '../support/gateway.ts';

const badGateway = respond(502, '<html>Bad Gateway</html>');
const unavailable = respond(503, '', { 'retry-after': '1' });
const ficus = { name: 'Ficus', tag: 'indoor' };

interface SetUpOptions extends TokenOptions {
  failures?: Error[];
  maxRetries?: number;
  /** What takes the place of pauses. By default, there are none. */
  beforeRetry?: PlantStoreOptions['beforeRetry'];
}

const withPauses = { beforeRetry: undefined };

/** A client and its service behind a gateway. Creating a plant first fails with each of `failures`. */
async function setUp(t: TestContext, given: SetUpOptions = {}) {
  const {
    failures = [],
    maxRetries,
    beforeRetry,
    ...options
  } = {
    beforeRetry: async () => {},
    ...given,
  };
  const wrap = (storage: Storage): Storage =>
    override(storage, {
      plants: {
        async create(...args) {
          const failure = failures.shift();
          if (failure !== undefined) throw failure;
          return storage.plants.create(...args);
        },
      },
    });
  const app = await startApp(t, { wrap });
  const { address: url, plan, requests } = await startGateway(t, app.address);
  const clientOf = async (user: string, more?: TokenOptions) =>
    new PlantStore({ url: app.address, token: await app.token(user, more) });
  const token = await app.token('alice', options);
  const store = new PlantStore({ url, token, maxRetries, beforeRetry });
  const lines = () => requests.map(({ line }) => line);
  /** The ids of all plants, which are read without the gateway. */
  const ids = async () => {
    const manager = await clientOf('carol', { role: 'manager' });
    return Array.fromAsync(manager.list({ fields: ['id'] }), ({ id }) => id);
  };
  return { store, clientOf, plan, requests, lines, ids };
}

describe('a request that only reads', () => {
  it('is repeated after a cut connection, a gateway error, and a response that ends early', async (t) => {
    const { store, plan, requests } = await setUp(t);
    await store.create(ficus);
    const short = respond(200, '[{"name":"Fic', { 'content-type': 'application/json' });
    for (const failure of [cutBefore, badGateway, respond(504, ''), short]) {
      requests.length = 0;
      plan.push(failure);
      assert.deepEqual(await Array.fromAsync(store.list()), [ficus]);
      assert.equal(requests.length, 2);
    }
  });

  it('is repeated after Retry-After, and not before', async (t) => {
    const { store, plan, requests } = await setUp(t, withPauses);
    await store.create(ficus);
    requests.length = 0;
    plan.push(unavailable);
    assert.deepEqual(await store.get(1), ficus);
    const [first, second] = requests.map(({ atMs }) => atMs);
    assert.ok(first !== undefined && second !== undefined);
    assert.ok(second - first >= 1_000, `after ${second - first} ms`);
  });

  it('is repeated `maxRetries` times, after longer and longer pauses', async (t) => {
    const { store, plan, requests } = await setUp(t, { ...withPauses, maxRetries: 2 });
    plan.push(badGateway, badGateway, badGateway);
    await assert.rejects(store.get(1), { kind: 'unexpected-response', status: 502 });
    const [first = 0, second = 0, third = 0, ...others] = requests.map(({ atMs }) => atMs);
    assert.deepEqual(others, []);
    assert.ok(second - first >= 500, `after ${second - first} ms`);
    assert.ok(third - second >= 1_000, `after ${third - second} ms`);
  });

  it('is repeated without a limit, each time after `beforeRetry`', async (t) => {
    const problems: unknown[] = [];
    const { store, plan, requests } = await setUp(t, {
      maxRetries: 0,
      beforeRetry: async ({ status }) => void problems.push(status),
    });
    await store.create(ficus);
    requests.length = 0;
    const statuses = [502, 503, 504, 502, 503, 504];
    plan.push(...statuses.map((status) => respond(status, '')));
    assert.deepEqual(await store.get(1), ficus);
    assert.deepEqual(problems, statuses);
    assert.equal(requests.length, 7);
  });

  it('ends while `beforeRetry` waits if its signal aborts', async (t) => {
    const { promise: waits, resolve } = Promise.withResolvers<void>();
    const { store, plan } = await setUp(t, {
      beforeRetry: () => {
        resolve();
        return new Promise(() => {});
      },
    });
    const controller = new AbortController();
    plan.push(badGateway);
    const call = store.get(1, { signal: controller.signal });
    await waits;
    controller.abort(new Error('enough'));
    await assert.rejects(call, /enough/);
  });

  it('is not repeated if Retry-After is later than the end of the call', async (t) => {
    const { store, plan, requests } = await setUp(t, withPauses);
    plan.push(respond(503, '', { 'retry-after': '3600' }));
    await assert.rejects(store.get(1), { status: 503, retryAfterSeconds: 3600 });
    assert.equal(requests.length, 1);
  });

  it('is not repeated after an error that lasts', async (t) => {
    const { store, plan, requests } = await setUp(t);
    await assert.rejects(store.get(1), { status: 404 });
    plan.push(respond(500, ''));
    await assert.rejects(store.get(1), { status: 500 });
    assert.equal(requests.length, 2);
  });
});

describe('POST without an id', () => {
  for (const [description, handler] of [
    ['a cut connection', cutBefore],
    ['a lost response', cutAfter],
    ['a gateway error', badGateway],
    ['an unknown 503 with Retry-After', unavailable],
  ] as const) {
    it(`is not repeated after ${description}, because it may have created a plant`, async (t) => {
      const { store, plan, lines } = await setUp(t);
      plan.push(handler);
      await assert.rejects(store.create(ficus), { outcomeUnknown: true });
      assert.deepEqual(lines(), ['POST /plants']);
    });
  }

  it('is not repeated if the service does not know its outcome', async (t) => {
    const { store, lines } = await setUp(t, { failures: [outcomeUnknown(new Error('lost'))] });
    await assert.rejects(store.create(ficus), { kind: 'outcome-unknown', outcomeUnknown: true });
    assert.deepEqual(lines(), ['POST /plants']);
  });

  it('is repeated if the service promises that nothing was changed', async (t) => {
    const failures = [
      storageUnavailable(new Error('away')),
      tooManyWrites(),
      new Problem('provider-unavailable', 'Its keys cannot be fetched.'),
    ];
    const { store, lines, ids } = await setUp(t, { failures });
    assert.deepEqual(await store.create(ficus), { id: 1, plant: ficus, isReplay: false });
    assert.equal(lines().length, 4);
    assert.deepEqual(await ids(), [1]);
  });

  it('is repeated after the Retry-After of a limit, and not before', async (t) => {
    const { store, plan, requests } = await setUp(t, withPauses);
    const problem = { type: '/problems/rate-limited', title: '', detail: '' };
    const headers = { 'content-type': 'application/problem+json', 'retry-after': '1' };
    plan.push(respond(429, JSON.stringify(problem), headers));
    assert.equal((await store.create(ficus)).id, 1);
    const [first, second] = requests.map(({ atMs }) => atMs);
    assert.ok(first !== undefined && second !== undefined);
    assert.ok(second - first >= 1_000, `after ${second - first} ms`);
  });

  it('reports a limit that lasts longer than a call', async (t) => {
    const limits = limitedTo({ requests: 1, windowSeconds: 3_600 });
    const app = await startApp(t, { limits });
    const store = new PlantStore({ url: app.address, token: await app.token('alice') });
    await store.create(ficus);
    const problem = { kind: 'rate-limited', status: 429, outcomeUnknown: false };
    await assert.rejects(store.create(ficus), problem);
  });

  it('does not wait for a full storage, which takes longer than a call', async (t) => {
    const { store, lines } = await setUp(t, {
      ...withPauses,
      failures: [storageFull(new Error('full'))],
    });
    const problem = { kind: 'storage-full', retryAfterSeconds: 60, outcomeUnknown: false };
    await assert.rejects(store.create(ficus), problem);
    assert.equal(lines().length, 1);
  });
});

describe('POST with an id of its own', () => {
  const mine = { ...ficus, id: 40 };

  it('creates one plant, whatever happened to the first request', async (t) => {
    for (const failure of [cutBefore, badGateway, cutAfter]) {
      const { store, plan, ids } = await setUp(t);
      plan.push(failure);
      const { id, plant } = await store.create(mine, { fields: ['tag', 'id'] });
      assert.equal(JSON.stringify({ id, plant }), '{"id":40,"plant":{"tag":"indoor","id":40}}');
      assert.deepEqual(await ids(), [40]);
    }
  });

  it('finds its plant by default fields too, and a plant without a tag', async (t) => {
    const { store, plan } = await setUp(t, { failures: [outcomeUnknown(new Error('lost'))] });
    plan.push(cutAfter, cutAfter);
    const created = await store.create({ name: 'Aloe', id: 7 });
    assert.deepEqual(created, { id: 7, plant: { name: 'Aloe', tag: '' }, isReplay: true });
  });

  it('reports a taken id, and compares only after an unknown outcome', async (t) => {
    const { store, lines } = await setUp(t);
    await store.create(mine);
    await assert.rejects(store.create(mine), { kind: 'id-taken', outcomeUnknown: false });
    assert.deepEqual(lines(), ['POST /plants', 'POST /plants']);
  });

  it('reports a taken id after a lost response if the plant there is different', async (t) => {
    const { store, clientOf, plan } = await setUp(t);
    const colleague = await clientOf('alice');
    const bob = await clientOf('bob');
    await store.create({ ...mine, tag: 'outdoor' });
    await bob.create({ ...mine, id: 41 }); // equal, but of a user whom alice cannot see
    const cutAfterChange: Handler = async (response, forward) => {
      await forward();
      await colleague.update(42, { name: 'Fern' });
      response.destroy();
    };
    for (const id of [40, 41, 42]) {
      plan.push(id === 42 ? cutAfterChange : cutBefore);
      const taken = { kind: 'id-taken', outcomeUnknown: true }; // as it is for 42, which was created
      await assert.rejects(store.create({ ...mine, id }), taken);
    }
  });

  it('reports an unknown outcome if the token cannot read the plant', async (t) => {
    const { store, plan } = await setUp(t, { scopes: ['plants:write'] });
    plan.push(cutAfter);
    const refused = { kind: 'insufficient-scope', outcomeUnknown: true };
    await assert.rejects(store.create(mine), refused);
  });
});

describe('POST with an idempotency key', () => {
  it('creates one plant, whatever happened to the first request', async (t) => {
    for (const failure of [cutBefore, badGateway, cutAfter]) {
      // Without the scope to read: the service itself knows what the first request did.
      const { store, plan, lines, ids } = await setUp(t, { scopes: ['plants:write'] });
      plan.push(failure);
      const options = { idempotencyKey: 'f81d4fae', fields: ['id', 'name'] } as const;
      const created = await store.create(ficus, options);
      const isReplay = failure === cutAfter;
      assert.deepEqual(created, { id: 1, plant: { id: 1, name: 'Ficus' }, isReplay });
      assert.equal(lines().length, 2);
      assert.deepEqual(await ids(), [1]);
    }
  });
});

describe('PATCH', () => {
  it('succeeds if it is repeated after a lost response', async (t) => {
    const { store, plan, lines } = await setUp(t);
    await store.create(ficus);
    plan.push(cutAfter);
    assert.deepEqual(await store.update(1, { tag: null }), { name: 'Ficus', tag: '' });
    assert.deepEqual(lines().slice(1), ['PATCH /plants/1', 'PATCH /plants/1']);
    assert.equal((await store.history(1)).length, 2);
  });

  it('with a condition succeeds after a lost response if the plant is as it should be', async (t) => {
    const { store, plan } = await setUp(t);
    await store.create(ficus);
    for (const [failure, patch, expected] of [
      [cutBefore, { name: 'Fern' }, { name: 'Fern', tag: 'indoor' }],
      [cutAfter, { tag: null }, { name: 'Fern', tag: '' }],
      [badGateway, { name: 'Fig' }, { name: 'Fig', tag: '' }],
      [cutAfter, { name: 'Ficus', tag: 'indoor' }, ficus],
    ] as const) {
      const { etag } = await store.getWithETag(1);
      plan.push(failure);
      assert.deepEqual(await store.update(1, patch, { ifMatch: etag }), expected);
    }
  });

  it('with a condition reports an unknown outcome if the plant is different', async (t) => {
    const { store, clientOf, plan } = await setUp(t);
    const colleague = await clientOf('alice');
    await store.create(ficus);
    const { etag: ifMatch } = await store.getWithETag(1);
    plan.push(async (response, forward) => {
      await cutAfter(response, forward);
      await colleague.update(1, { name: 'Fern' });
    });
    const changed = { kind: 'precondition-failed', outcomeUnknown: true };
    await assert.rejects(store.update(1, { name: 'Fig' }, { ifMatch }), changed);
  });
});

describe('the restore of a plant', () => {
  it('succeeds if it is repeated after a lost response', async (t) => {
    for (const failure of [cutBefore, badGateway, cutAfter]) {
      const { store, plan } = await setUp(t);
      await store.create(ficus);
      await store.delete(1);
      plan.push(failure);
      const restored = await store.restore(1, { fields: ['tag', 'id'] });
      assert.equal(JSON.stringify(restored), '{"tag":"indoor","id":1}');
    }
  });

  it('reports the second response after a lost one if no restore was the latest change', async (t) => {
    const { store, clientOf, plan } = await setUp(t);
    const colleague = await clientOf('alice');
    const bob = await clientOf('bob');
    for (let count = 0; count < 3; count++) await store.create(ficus);
    await store.delete(2);
    await store.delete(3);
    await bob.create({ ...ficus, id: 2 }); // of a user whom alice cannot see
    const cutAfterChange: Handler = async (response, forward) => {
      await forward();
      await colleague.update(3, { name: 'Fern' });
      response.destroy();
    };
    for (const id of [1, 2, 3]) {
      plan.push(id === 3 ? cutAfterChange : cutBefore);
      const kind = id === 2 ? 'plant-not-found' : 'id-taken';
      await assert.rejects(store.restore(id), { kind, outcomeUnknown: true }); // 3 was restored
    }
  });
});

describe('DELETE', () => {
  it('succeeds if it is repeated after a lost response', async (t) => {
    const { store, plan, lines, ids } = await setUp(t);
    await store.create(ficus);
    plan.push(cutAfter);
    await store.delete(1);
    assert.deepEqual(lines().slice(1), ['DELETE /plants/1', 'DELETE /plants/1']);
    assert.deepEqual(await ids(), []);
  });

  it('with a condition succeeds if it is repeated after a lost response', async (t) => {
    const { store, plan, ids } = await setUp(t);
    await store.create(ficus);
    const { etag } = await store.getWithETag(1);
    plan.push(cutAfter);
    await store.delete(1, { ifMatch: etag });
    assert.deepEqual(await ids(), []);
  });

  it('reports a missing plant if no earlier request can have deleted it', async (t) => {
    const { store, plan } = await setUp(t);
    await assert.rejects(store.delete(1), { kind: 'plant-not-found', outcomeUnknown: false });
    const problem = { type: '/problems/overloaded', title: '', detail: '' };
    const headers = { 'content-type': 'application/problem+json', 'retry-after': '1' };
    plan.push(respond(503, JSON.stringify(problem), headers));
    await assert.rejects(store.delete(1), { kind: 'plant-not-found', outcomeUnknown: false });
  });

  it('reports an unknown outcome if any request may have deleted the plant', async (t) => {
    const { store, plan } = await setUp(t);
    plan.push(cutAfter, respond(401, ''));
    await assert.rejects(store.delete(1), { status: 401, outcomeUnknown: true });
  });
});

describe('a request about tokens', () => {
  it('is repeated if it revokes, also one whose response was lost', async (t) => {
    const { store, clientOf, plan, lines } = await setUp(t);
    const { id } = await store.createToken();
    plan.push(cutAfter);
    await store.revokeToken(id);
    plan.push(cutAfter);
    await store.revokeOwnToken();
    const revoked = ['DELETE', 'DELETE'];
    assert.deepEqual(
      lines().map((line) => line.split(' ')[0]),
      ['POST', ...revoked, ...revoked],
    );
    const states = (await (await clientOf('alice')).listTokens()).map(({ state }) => state);
    assert.deepEqual(states, ['active', 'revoked', 'revoked']);
  });

  it('is not repeated if it may have created one', async (t) => {
    const { store, plan, lines } = await setUp(t);
    plan.push(unavailable, cutAfter);
    await assert.rejects(store.createToken(), { outcomeUnknown: true });
    assert.equal(lines().length, 1, 'a gateway can have passed it on');
    await assert.rejects(store.createToken(), { kind: 'network', outcomeUnknown: true });
    assert.equal((await store.listTokens()).length, 2);
  });
});

it('a share is set and ended once, even if the responses are lost', async (t) => {
  const { store, plan, lines } = await setUp(t, { scopes: ['shares:write'] });
  plan.push(cutAfter);
  await store.share('bob', 'read');
  plan.push(cutAfter);
  await store.unshare('bob');
  const [put, end] = ['PUT /shares/bob', 'DELETE /shares/bob'];
  assert.deepEqual(lines(), [put, put, end, end]);
  await assert.rejects(store.unshare('bob'), { kind: 'share-not-found', outcomeUnknown: false });
});
