/**
 * What is repeated and what not, and what a call reports after a lost response.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import type { PlantStore } from '../../src/client/client.ts';
import { outcomeUnknown, Problem, storageUnavailable, tooManyWrites } from '../../src/problem.ts';
import { cutAfter, cutBefore, respond, type Handler } from '../support/gateway.ts';
import { connect } from './service.ts';

const badGateway = respond(502, '<html>Bad Gateway</html>');
const unavailable = respond(503, '', { 'retry-after': '1' });
const short = respond(200, '[{"name":"Fic', { 'content-type': 'application/json' });
/** After each, nobody knows whether the service got the request. */
const losses = { cutBefore, cutAfter, badGateway, unavailable };
const ficus = { name: 'Ficus', tag: 'indoor' };
const mine = { ...ficus, id: 40 };
const eager = { scopes, beforeRetry: async () => {} };

function problem(kind: string, status: number, retryAfter: string): Handler {
  const document = JSON.stringify({ type: `/problems/${kind}`, title: '', detail: '' });
  const headers = { 'content-type': 'application/problem+json', 'retry-after': retryAfter };
  return respond(status, document, headers);
}

describe('a call that only reads', () => {
  it('is repeated after a lost response, and one that ends early', async (t) => {
    const { store, clientOf, plan, lines } = await connect(t, eager);
    await (await clientOf('alice')).create(ficus);
    const failures = [...Object.values(losses), respond(504, ''), short];
    for (const failure of failures) {
      plan.push(failure);
      assert.deepEqual(await Array.fromAsync(store.list()), [ficus]);
    }
    assert.equal(lines().length, 2 * failures.length);
  });

  it('is not repeated after an error that lasts', async (t) => {
    const { store, plan, lines } = await connect(t, eager);
    await assert.rejects(store.get(1), { status: 404 });
    plan.push(respond(500, ''));
    await assert.rejects(store.get(1), { status: 500 });
    assert.equal(lines().length, 2);
  });
});

describe('a call that can create a second time', () => {
  it('is not repeated if the first request may have created something', async (t) => {
    const { store, plan, requests, lines } = await connect(t, eager);
    const calls = { '/plants': () => store.create(ficus), '/tokens': () => store.createToken() };
    for (const [path, call] of Object.entries(calls)) {
      for (const [name, failure] of Object.entries(losses)) {
        requests.length = 0;
        plan.push(failure);
        await assert.rejects(call, { outcomeUnknown: true });
        assert.deepEqual(lines(), [`POST ${path}`], name);
      }
    }
  });

  it('is not repeated if the service does not know its outcome', async (t) => {
    const failures = [outcomeUnknown(new Error('lost'))];
    const { store, lines } = await connect(t, { ...eager, failures });
    await assert.rejects(store.create(ficus), { kind: 'outcome-unknown', outcomeUnknown: true });
    assert.deepEqual(lines(), ['POST /plants']);
  });

  it('is repeated if the service promises that nothing was changed', async (t) => {
    const failures = [
      storageUnavailable(new Error('away')),
      tooManyWrites(),
      new Problem('provider-unavailable', 'Its keys cannot be fetched.'),
    ];
    const { store, lines } = await connect(t, { ...eager, failures });
    assert.deepEqual(await store.create(ficus), { id: 1, plant: ficus, isReplay: false });
    assert.equal(lines().length, 4);
    assert.deepEqual(await Array.fromAsync(store.list()), [ficus]);
  });
});

/** Its store has the plant 1, the deleted plant 2, a share with bob, and another token. */
interface Prepared {
  store: PlantStore;
  etag: string;
  tokenId: string;
}

/** Calls that can be repeated. Each has this result, and leaves plants with these ids. */
const repeatable: Record<
  string,
  { call: (prepared: Prepared) => Promise<unknown>; result?: object; ids?: number[] }
> = {
  'POST with an id of its own': {
    call: ({ store }) => store.create(mine, { fields: ['tag', 'id'] }),
    result: { id: 40, plant: { tag: 'indoor', id: 40 } },
    ids: [1, 40],
  },
  'POST with an idempotency key': {
    call: ({ store }) => store.create(ficus, { idempotencyKey: 'f81d4fae', fields: ['name'] }),
    result: { id: 3, plant: { name: 'Ficus' } },
    ids: [1, 3],
  },
  PATCH: {
    call: ({ store }) => store.update(1, { tag: null }),
    result: { name: 'Ficus', tag: '' },
  },
  'PATCH with a condition': {
    call: ({ store, etag }) => store.update(1, { name: 'Fern' }, { ifMatch: etag }),
    result: { name: 'Fern', tag: 'indoor' },
  },
  'the restore of a plant': {
    call: ({ store }) => store.restore(2, { fields: ['tag', 'id'] }),
    result: { tag: 'indoor', id: 2 },
    ids: [1, 2],
  },
  DELETE: { call: ({ store }) => store.delete(1), ids: [] },
  'DELETE with a condition': {
    call: ({ store, etag }) => store.delete(1, { ifMatch: etag }),
    ids: [],
  },
  'the start of a share': { call: ({ store }) => store.share('carol', 'read') },
  'the end of a share': { call: ({ store }) => store.unshare('bob') },
  'the end of a token': { call: ({ store, tokenId }) => store.revokeToken(tokenId) },
  'the end of its own token': { call: ({ store }) => store.revokeOwnToken() },
};

describe('a call that changes nothing more a second time is repeated once', () => {
  for (const [name, { call, result, ids = [1] }] of Object.entries(repeatable)) {
    it(`and succeeds, whatever happened to the first request: ${name}`, async (t) => {
      for (const [loss, failure] of Object.entries(losses)) {
        const { store, clientOf, plan, lines } = await connect(t, eager);
        const direct = await clientOf('alice', { scopes });
        for (const plant of [ficus, ficus]) await direct.create(plant);
        await direct.delete(2);
        await direct.share('bob', 'read');
        const { etag } = await direct.getWithETag(1);
        const { id: tokenId } = await direct.createToken();
        plan.push(failure);
        const returned = await call({ store, etag, tokenId });
        if (result === undefined) assert.equal(returned, undefined, loss);
        else assert.partialDeepStrictEqual(returned, result, loss);
        const [first, ...others] = lines().filter((line) => !line.startsWith('GET'));
        assert.deepEqual(others, [first], loss);
        const found = await Array.fromAsync(direct.list({ fields: ['id'] }), ({ id }) => id);
        assert.deepEqual(found, ids, loss);
      }
    });
  }

  it('and the service has its change once', async (t) => {
    const { store, clientOf, plan } = await connect(t, eager);
    const direct = await clientOf('alice', { scopes });
    plan.push(cutAfter);
    const key = { idempotencyKey: 'a "key" \\', fields: ['tag', 'id'] } as const;
    const created = await store.create(ficus, key);
    assert.equal(created.isReplay, true);
    assert.equal(JSON.stringify(created.plant), '{"tag":"indoor","id":1}');
    const reused = { kind: 'idempotency-key-reused' };
    await assert.rejects(store.create({ name: 'Fern' }, key), reused);
    plan.push(cutAfter);
    await store.update(1, { tag: null });
    assert.equal((await direct.history(1)).length, 2);
    for (const call of [() => store.share('bob', 'write'), () => store.revokeOwnToken()]) {
      plan.push(cutAfter);
      await call();
    }
    assert.deepEqual((await direct.listShares()).given, [{ user: 'bob', access: 'write' }]);
    const states = (await direct.listTokens()).map(({ state }) => state);
    assert.deepEqual(states.toSorted(), ['active', 'revoked']);
  });

  it('and finds its plant by default fields too, and without a tag', async (t) => {
    const failures = [outcomeUnknown(new Error('lost'))];
    const { store, plan } = await connect(t, { ...eager, failures });
    plan.push(cutAfter, cutAfter);
    const created = await store.create({ name: 'Aloe', id: 7 });
    assert.deepEqual(created, { id: 7, plant: { name: 'Aloe', tag: '' }, isReplay: true });
    for (const patch of [{ tag: 'hall' }, { tag: null }, { name: 'Ivy', tag: 'sill' }]) {
      const { plant, etag } = await store.getWithETag(7);
      plan.push(cutAfter);
      const expected = { ...plant, ...patch, tag: patch.tag ?? '' };
      assert.deepEqual(await store.update(7, patch, { ifMatch: etag }), expected);
    }
  });
});

describe('the second response after a lost one is reported', () => {
  it('if the plant with the id is different, or cannot be read', async (t) => {
    const { store, clientOf, plan, lines } = await connect(t, eager);
    const [colleague, bob] = [await clientOf('alice'), await clientOf('bob')];
    await store.create({ ...mine, tag: 'outdoor' });
    await assert.rejects(store.create(mine), { kind: 'id-taken', outcomeUnknown: false });
    assert.deepEqual(lines(), ['POST /plants', 'POST /plants'], 'nothing was lost');
    await bob.create({ ...mine, id: 41 }); // equal, but of a user whom alice cannot see
    const taken = { kind: 'id-taken', outcomeUnknown: true }; // as it is for 42, which was created
    for (const id of [40, 41, 42]) {
      plan.push(id === 42 ? andThen(() => colleague.update(42, { name: 'Fern' })) : cutBefore);
      await assert.rejects(store.create({ ...mine, id }), taken);
    }
    const writer = await connect(t, { ...eager, scopes: ['plants:write'] });
    writer.plan.push(cutAfter);
    const refused = { kind: 'insufficient-scope', outcomeUnknown: true };
    await assert.rejects(writer.store.create(mine), refused);
  });

  it('if the plant is not as the conditional change makes it', async (t) => {
    const { store, clientOf, plan } = await connect(t, eager);
    const colleague = await clientOf('alice');
    await store.create(ficus);
    const { etag: ifMatch } = await store.getWithETag(1);
    plan.push(andThen(() => colleague.update(1, { name: 'Fern' })));
    const changed = { kind: 'precondition-failed', outcomeUnknown: true };
    await assert.rejects(store.update(1, { name: 'Fig' }, { ifMatch }), changed);
  });

  it('if no restore was the latest change of the plant', async (t) => {
    const { store, clientOf, plan } = await connect(t, eager);
    const [colleague, bob] = [await clientOf('alice'), await clientOf('bob')];
    for (let count = 0; count < 3; count++) await store.create(ficus);
    for (const id of [2, 3]) await store.delete(id);
    await bob.create({ ...ficus, id: 2 }); // of a user whom alice cannot see
    for (const id of [1, 2, 3]) {
      plan.push(id === 3 ? andThen(() => colleague.update(3, { name: 'Fern' })) : cutBefore);
      const kind = id === 2 ? 'plant-not-found' : 'id-taken';
      await assert.rejects(store.restore(id), { kind, outcomeUnknown: true }); // 3 was restored
    }
  });

  it('if no earlier request can have deleted what is missing', async (t) => {
    const { store, plan } = await connect(t, eager);
    const missing = { kind: 'plant-not-found', outcomeUnknown: false };
    await assert.rejects(store.delete(1), missing);
    plan.push(problem('overloaded', 503, '1'));
    await assert.rejects(store.delete(1), missing);
    await assert.rejects(store.unshare('bob'), { kind: 'share-not-found', outcomeUnknown: false });
    plan.push(cutAfter, respond(401, ''));
    await assert.rejects(store.delete(1), { status: 401, outcomeUnknown: true });
  });
});

/** The service handles the request, then `change` happens, and the response is lost. */
function andThen(change: () => Promise<unknown>): Handler {
  return async (response, forward) => {
    await forward();
    await change();
    response.destroy();
  };
}

describe('before a retry, the client', () => {
  it('waits at least for Retry-After', async (t) => {
    const { store, plan, requests } = await connect(t);
    for (const [failure, call] of [
      [unavailable, () => store.token()],
      [problem('rate-limited', 429, '1'), () => store.create(ficus)],
    ] as const) {
      requests.length = 0;
      plan.push(failure);
      await call();
      const [first, second] = requests.map(({ atMs }) => atMs);
      assert.ok(first !== undefined && second !== undefined);
      assert.ok(second - first >= 1_000, `after ${second - first} ms`);
    }
  });

  it('waits longer and longer, and gives up after `maxRetries`', async (t) => {
    const { store, plan, requests } = await connect(t, { maxRetries: 2 });
    plan.push(badGateway, badGateway, badGateway);
    await assert.rejects(store.get(1), { kind: 'unexpected-response', status: 502 });
    const [first = 0, second = 0, third = 0, ...others] = requests.map(({ atMs }) => atMs);
    assert.deepEqual(others, []);
    assert.ok(second - first >= 500, `after ${second - first} ms`);
    assert.ok(third - second >= 1_000, `after ${third - second} ms`);
  });

  it('calls `beforeRetry` instead, each time and without a limit', async (t) => {
    const problems: unknown[] = [];
    const { store, plan, lines } = await connect(t, {
      maxRetries: 0,
      beforeRetry: async ({ status }) => void problems.push(status),
    });
    const statuses = [502, 503, 504, 502, 503, 504];
    plan.push(...statuses.map((status) => respond(status, '')));
    assert.equal((await store.token()).user, 'alice');
    assert.deepEqual(problems, statuses);
    assert.equal(lines().length, 7);
  });

  it('does not wait for what takes longer than the call', async (t) => {
    const { store, plan, lines } = await connect(t);
    for (const [kind, status] of [
      ['storage-full', 507],
      ['rate-limited', 429],
    ] as const) {
      plan.push(problem(kind, status, '60'));
      const expected = { kind, retryAfterSeconds: 60, outcomeUnknown: false };
      await assert.rejects(store.create(ficus), expected);
    }
    plan.push(respond(503, '', { 'retry-after': '3600' }));
    await assert.rejects(store.get(1), { status: 503, retryAfterSeconds: 3600 });
    assert.equal(lines().length, 3);
  });
});
