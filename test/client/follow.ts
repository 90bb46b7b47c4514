/**
 * Changes as they happen, and a mirror that follows them.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { PlantStore, ResponseInfo } from '../../src/client/client.ts';
import { scopes } from '../../src/access/access.ts';
import { cutBefore, forwardAll, respond, type Handler } from '../support/gateway.ts';
import { seededRandom } from '../support/random.ts';
import { rounds, sizeOf } from '../support/rounds.ts';
import { connect } from './service.ts';

const eager = { scopes, beforeRetry: async () => {} };
const ended = (reason: string) =>
  respond(410, JSON.stringify({ type: '/problems/cursor-ended', title: '', detail: '', reason }));

/** The next batch with changes. */
async function nextOf<B extends { changes: readonly object[] }>(
  batches: AsyncGenerator<B, never, void>,
): Promise<B> {
  for (;;) {
    const { value } = await batches.next();
    if (value.changes.length > 0) return value;
  }
}

describe('changes', () => {
  it('begin with the cursor of now, and continue from the one of any batch', async (t) => {
    const { store, clientOf } = await connect(t);
    await store.create({ name: 'before' });
    const { value: begin } = await store.changes().next();
    assert.deepEqual(begin.changes, []);
    for (const name of ['a', 'b']) await store.create({ name });
    await store.update(2, { tag: 'x' });
    await store.delete(3);

    const { after, position, changes } = await nextOf(store.changes({ after: begin.after }));
    const shown = changes.map(({ id, event, user, plant }) => [id, event, user, plant]);
    const updated = [2, 'updated', 'alice', { name: 'a', tag: 'x' }];
    assert.deepEqual(shown, [updated, [3, 'deleted', 'alice', undefined]]);
    assert.ok(position > begin.position);
    await (await clientOf('alice')).restore(3);
    const options = { after, fields: ['name', 'id'], pageSize: 1 } as const;
    const [change] = (await nextOf(store.changes(options))).changes;
    const plant: { name: string; id: number } | undefined = change?.plant;
    assert.equal(JSON.stringify(plant), '{"name":"b","id":3}');
    // @ts-expect-error: the tag is not selected
    assert.equal(change?.plant?.tag, undefined);
    await assert.rejects(store.changes({ pageSize: 0 }).next(), { name: 'RangeError' });
    await assert.rejects(store.changes({ after: 'x' }).next(), { kind: 'invalid-request' });
  });

  it('come as soon as they happen, with requests that wait', async (t) => {
    const { store, clientOf, gateway, lines } = await connect(t);
    const batches = store.changes();
    await batches.next();
    const next = nextOf(batches);
    await gateway.received(2);
    await (await clientOf('alice')).create({ name: 'Ficus' });
    assert.equal((await next).changes[0]?.plant?.name, 'Ficus');
    assert.match(lines()[1] ?? '', /^GET \/changes\?after=\S+&limit=1000&wait=25$/);
  });

  it('resume after any number of temporary problems, once they have begun', async (t) => {
    const { store, plan } = await connect(t, { scopes, maxRetries: 0 });
    plan.push(cutBefore);
    await assert.rejects(store.changes().next(), { kind: 'network' });

    const patient = await connect(t, eager);
    const batches = patient.store.changes();
    await batches.next();
    const busy = respond(429, '', { 'retry-after': '1' });
    patient.plan.push(respond(408, ''), busy, respond(503, ''), cutBefore, busy, respond(504, ''));
    await (await patient.clientOf('alice')).create({ name: 'Ficus' });
    assert.equal((await nextOf(batches)).changes.length, 1);
  });

  it('end with a problem that has the reason, and then begin anew', async (t) => {
    const { store, clientOf } = await connect(t);
    const batches = store.changes();
    await batches.next();
    await (await clientOf('bob', { scopes })).share('alice', 'read');
    const problem = { kind: 'cursor-ended', status: 410, reason: 'access-changed' };
    await assert.rejects(nextOf(batches), problem);
    assert.equal((await store.changes().next()).value.changes.length, 0);
  });

  it('end with the reason of the signal, and so does the request', async (t) => {
    const { store, gateway } = await connect(t);
    const abort = new AbortController();
    const batches = store.changes({ signal: abort.signal });
    await batches.next();
    const next = batches.next();
    await gateway.received(2);
    const reason = new Error('the user left');
    abort.abort(reason);
    await assert.rejects(next, reason);
    await gateway.requests[1]?.closed;
  });

  it('are not requested all the time if the responses come at once', async (t) => {
    const { store, plan, gateway } = await connect(t);
    const abort = new AbortController();
    const batches = store.changes({ signal: abort.signal });
    const { value: begin } = await batches.next();
    const headers = {
      'content-type': 'application/json',
      link: `</changes?after=${begin.after}>; rel="next"`,
      'change-position': String(begin.position),
    };
    plan.push(...Array.from({ length: 10 }, () => respond(200, '[]', headers)));
    const next = batches.next();
    await gateway.received(3);
    abort.abort(new Error('enough'));
    await assert.rejects(next, /enough/);
    const [, first = 0, second = 0] = gateway.requests.map(({ atMs }) => atMs);
    assert.ok(second - first >= 900, `after ${second - first} ms`);
  });

  it('are refused if a proxy has removed what they need', async (t) => {
    const { store, plan } = await connect(t);
    for (const headers of [
      { 'change-position': '1' },
      { link: '</changes?after=a>; rel="next"' },
    ]) {
      plan.push(respond(200, '[]', { 'content-type': 'application/json', ...headers }));
      await assert.rejects(store.changes().next(), { kind: 'unexpected-response' });
    }
  });
});

/** So that a test that fails leaves no mirror. */
function abortedAfter(t: TestContext): AbortController {
  const abort = new AbortController();
  t.after(() => abort.abort());
  return abort;
}

/** Makes a change, and returns its receipt. */
async function receiptOf(
  change: (options: { onResponse: (response: ResponseInfo) => void }) => Promise<unknown>,
): Promise<number> {
  let position: number | undefined;
  await change({ onResponse: (response) => (position = response.position) });
  assert.ok(position !== undefined);
  return position;
}

async function listOf(store: PlantStore) {
  const plants = await Array.fromAsync(store.list({ fields: ['id', 'name'] }));
  return new Map(plants.map(({ id, name }) => [id, { name }]));
}

describe('a mirror', () => {
  it('has each change once its receipt is reached', async (t) => {
    const { store, clientOf } = await connect(t, eager);
    const writer = await clientOf('alice');
    await writer.create({ name: 'first' });
    const abort = abortedAfter(t);
    const seen: unknown[] = [];
    const mirror = await store.mirror({
      fields: ['name'],
      signal: abort.signal,
      onChange: (changes) => void seen.push(...(changes ?? ['anew'])),
    });
    assert.deepEqual(mirror.plants, new Map([[1, { name: 'first' }]]));
    await mirror.until(await receiptOf((options) => writer.create({ name: 'second' }, options)));
    assert.deepEqual(mirror.plants.get(2), { name: 'second' });
    await mirror.until(await receiptOf((options) => writer.update(2, { name: '2nd' }, options)));
    assert.deepEqual(mirror.plants.get(2), { name: '2nd' });
    await mirror.until(await receiptOf((options) => writer.delete(1, options)));
    assert.equal(mirror.plants.has(1), false);
    await mirror.until(await receiptOf((options) => writer.restore(1, options)));
    assert.deepEqual(mirror.plants.get(1), { name: 'first' });
    await writer.create({ name: 'third' });
    await mirror.until();
    assert.deepEqual(mirror.plants, await listOf(writer));
    assert.partialDeepStrictEqual(
      seen,
      ['created', 'updated', 'deleted', 'restored', 'created'].map((event) => ({ event })),
    );
    abort.abort();
    await mirror.ended;
    await assert.rejects(mirror.until(Number.MAX_SAFE_INTEGER), { name: 'AbortError' });
  });

  it('shows no older plant after a receipt, while others write and connections fail', async (t) => {
    const { store, clientOf, plan } = await connect(t, eager);
    const abort = abortedAfter(t);
    const mirror = await store.mirror({ fields: ['name'], signal: abort.signal });
    const writers = await Promise.all(
      ['alice', 'alice', 'bob', 'alice'].map(async (user) => ({
        user,
        writer: await clientOf(user),
      })),
    );
    const write = async ({ user, writer }: (typeof writers)[number]) => {
      const { id } = await writer.create({ name: '0' });
      for (let count = 1; count <= sizeOf({ usual: 25, long: 1_000 }); count++) {
        const name = String(count);
        const position = await receiptOf((options) => writer.update(id, { name }, options));
        if (count % 5 === 0) plan.push(cutBefore);
        await mirror.until(position);
        assert.equal(mirror.plants.get(id)?.name, user === 'alice' ? name : undefined);
      }
    };
    await Promise.all(writers.map(write));
    abort.abort();
    await mirror.ended;
  });

  it('does not wait for a change that its user cannot see', async (t) => {
    const { store, clientOf } = await connect(t, eager);
    const abort = abortedAfter(t);
    const mirror = await store.mirror({ signal: abort.signal });
    const bob = await clientOf('bob');
    const startMs = performance.now();
    await mirror.until(await receiptOf((options) => bob.create({ name: 'hidden' }, options)));
    assert.ok(performance.now() - startMs < 10_000);
    assert.equal(mirror.plants.size, 0);
    abort.abort();
    await mirror.ended;
  });

  it('begins anew when a cursor ends, and has a whole list at each moment', async (t) => {
    const { store, clientOf, plan, gateway } = await connect(t, eager);
    const bob = await clientOf('bob', { scopes });
    await bob.create({ name: 'shared' });
    await store.create({ name: 'own' });
    const abort = abortedAfter(t);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const mirror = await store.mirror({ signal: abort.signal, onChange: resolve });
    const before = mirror.plants;
    const sizes: number[] = [];
    const listing: Handler = async (response, forward) => {
      sizes.push(mirror.plants.size);
      await forwardAll(response, forward);
    };
    await gateway.received(4); // the last one waits
    plan.push(forwardAll, listing); // a new cursor, then the list
    await bob.share('alice', 'read');
    assert.equal(await promise, undefined, 'everything can have changed');
    assert.deepEqual(sizes, [1]);
    assert.deepEqual([before.size, mirror.plants.size], [1, 2]);
    await bob.update(1, { tag: 'seen' });
    await mirror.until();
    assert.deepEqual(mirror.plants.get(1), { name: 'shared', tag: 'seen' });
    abort.abort();
    await mirror.ended;
  });

  it('follows shares that come and go, each within about a second', async (t) => {
    const { store, clientOf } = await connect(t, eager);
    const bob = await clientOf('bob', { scopes });
    await bob.create({ name: 'shared' });
    const abort = abortedAfter(t);
    let isListed = () => {};
    const mirror = await store.mirror({ signal: abort.signal, onChange: () => isListed() });
    const startMs = performance.now();
    for (const isShared of [true, false, true, false, true]) {
      const { promise, resolve } = Promise.withResolvers<void>();
      isListed = resolve;
      await (isShared ? bob.share('alice', 'read') : bob.unshare('alice'));
      await promise;
      assert.equal(mirror.plants.size, isShared ? 1 : 0);
    }
    assert.ok(performance.now() - startMs < 10_000);
    abort.abort();
    await mirror.ended;
  });

  for (const reason of ['restored', 'access-changed']) {
    it(`rejects who waits for a change that a restore may have removed, if its cursor ends with ${reason}`, async (t) => {
      const { store, clientOf, plan, gateway, lines } = await connect(t, eager);
      const abort = abortedAfter(t);
      const mirror = await store.mirror({ signal: abort.signal });
      const lost = mirror.until(Number.MAX_SAFE_INTEGER);
      await gateway.received(5); // the mirror waits, and `until` has looked
      let hasEnded = false;
      /** The mirror finds an end for the reason. Who then asks for the cursor finds the restore. */
      const restored: Handler = async (response, forward) => {
        plan.push(restored);
        const target = lines().at(-1) ?? '';
        if (hasEnded && target.includes('wait=')) return forwardAll(response, forward);
        if (!target.includes('after=')) return forwardAll(response, forward);
        hasEnded ||= target.includes('wait=');
        return ended(target.includes('wait=') ? reason : 'restored')(response, forward);
      };
      plan.push(restored);
      await (await clientOf('alice')).create({ name: 'Ficus' });
      await assert.rejects(lost, { kind: 'cursor-ended', reason: 'restored' });
      plan.length = 0;
      await mirror.until();
      assert.equal(mirror.plants.size, 1);
      abort.abort();
      await mirror.ended;
    });
  }

  it('ends with a problem that lasts, and with an error of its user', async (t) => {
    const { store, clientOf } = await connect(t, eager);
    const failure = new Error('of the user');
    const failing = await store.mirror({ onChange: () => Promise.reject(failure) });
    await (await clientOf('alice')).create({ name: 'Ficus' });
    await assert.rejects(failing.until(Number.MAX_SAFE_INTEGER), failure);
    const mirror = await store.mirror();
    await assert.rejects(failing.ended, failure); // nobody has waited for it until now
    const revoked = assert.rejects(mirror.ended, { kind: 'invalid-token' });
    await store.revokeOwnToken();
    await revoked;
    await assert.rejects(mirror.until(Number.MAX_SAFE_INTEGER), { kind: 'invalid-token' });
  });

  it('is equal to the list after random changes, shares and failures', async (t) => {
    await rounds(t, async (inner, seed) => {
      const random = seededRandom(seed);
      const { store, clientOf, plan } = await connect(inner, eager);
      const [alice, bob] = [await clientOf('alice'), await clientOf('bob', { scopes })];
      const abort = abortedAfter(inner);
      const mirror = await store.mirror({ fields: ['name'], signal: abort.signal });
      const steps: ((store: PlantStore, id: number) => Promise<unknown>)[] = [
        (writer) => writer.create({ name: 'new' }),
        (writer, id) => writer.create({ name: 'mine', id }),
        (writer, id) => writer.update(id, { name: `name ${random()}` }),
        (writer, id) => writer.delete(id),
        (writer, id) => writer.restore(id),
      ];
      for (let left = sizeOf({ usual: 60, long: 600 }); left > 0; left--) {
        const step = steps[Math.floor(random() * steps.length)];
        const id = 1 + Math.floor(random() * 20);
        const refused = () => {}; // it cannot be done to every plant
        await step?.(random() < 0.5 ? alice : bob, id).catch(refused);
        if (random() < 0.1) plan.push(cutBefore);
        if (left % 30 === 0) await bob.share('alice', random() < 0.5 ? 'read' : 'write');
        if (left % 40 === 0) await bob.unshare('alice');
        if (random() > 0.1) continue;
        await mirror.until();
        assert.deepEqual(mirror.plants, await listOf(alice));
      }
      await mirror.until();
      assert.deepEqual(mirror.plants, await listOf(alice));
      abort.abort();
      await mirror.ended;
    });
  });
});
