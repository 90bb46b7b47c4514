/**
 * The outcome of a change is right, whatever happens to COMMIT and to its response.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { Plant } from '../../src/plants/plant.ts';
import { idle } from '../../src/webhooks/webhook.ts';
import { addToken } from '../support/app.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { openPostgres } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { identify } from '../support/tokens.ts';

/** The longest time of a change: 5.5 seconds in docs/how-to/replicas.md, and what a busy machine adds. */
const maxOutcomeMs = 6_500;

/** A simple query, as the protocol sends it. */
const queryOf = (sql: string) => {
  const message = Buffer.from(`Q\0\0\0\0${sql}\0`);
  message.writeInt32BE(message.length - 1, 1);
  return message;
};
const commit = queryOf('COMMIT');

/** One storage behind a proxy that reports the next COMMIT, and another one without a proxy. */
async function setUp(t: TestContext) {
  const { url, proxy, direct } = await databaseBehindProxy(t);
  const sound = await openPostgres(direct);
  t.after(() => sound[Symbol.asyncDispose]());
  const storage = await openPostgres(url);
  t.after(() => storage[Symbol.asyncDispose]());
  const grant = await identify(sound, await addToken(sound, 'alice'));
  assert.ok(grant);
  const { caller } = grant;
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  /** Replaces the next COMMIT. */
  const onCommit = (replace: (before: Buffer, after: Buffer) => Buffer) => {
    proxy.rewrite = (bytes) => {
      const at = bytes.indexOf(commit);
      if (at === -1) return bytes;
      proxy.rewrite = (other) => other;
      const replaced = replace(bytes.subarray(0, at), bytes.subarray(at + commit.length));
      setImmediate(resolve);
      return replaced;
    };
  };
  const create = (name: string, by = storage) => by.plants.create(caller, { name });
  const names = async () => {
    const page = { after: 0, limit: 100, fields: ['name'] } as const;
    const { json } = await sound.plants.list(caller, page);
    const plants: Plant[] = JSON.parse(`[${json}]`);
    return plants.map(({ name }) => name);
  };
  return { proxy, sound, storage, grant, sent, onCommit, create, names };
}

type World = Awaited<ReturnType<typeof setUp>>;

/** Forwards COMMIT and nothing else until `meanwhile` has ended, and then cuts the connection. */
async function loseResponse({ proxy, sent, onCommit }: World, meanwhile: () => Promise<unknown>) {
  onCommit((before, after) => {
    setImmediate(() => (proxy.isStuck = true)); // once this is forwarded
    return Buffer.concat([before, commit, after]);
  });
  await sent;
  await meanwhile();
  proxy.isStuck = false;
  proxy.cutAll();
}

it('PostgreSQL: a change is stored once if the response to its COMMIT is lost', async (t) => {
  const world = await setUp(t);
  const isStored = async () => (await world.names()).length > 0;
  const cut = loseResponse(world, () => until('it is stored', isStored));
  assert.equal((await world.create('first')).id, 1);
  await cut;
  assert.deepEqual(await world.names(), ['first']);
});

it('PostgreSQL: a token has revoked itself if the response to its COMMIT is lost', async (t) => {
  const world = await setUp(t);
  const { sound, storage, grant } = world;
  const tokens = () => sound.identity.listTokens({ store: grant.caller.store, limit: 1 });
  const isRevoked = async () => (await tokens())[0]?.revokedAtMs === 1;
  const cut = loseResponse(world, () => until('it is revoked', isRevoked));
  const revoked = await storage.identity.revokeToken(grant.tokenId, 1, grant);
  assert.equal(revoked?.revokedAtMs, 1);
  await cut;
});

it('PostgreSQL: a share is new if the response to its COMMIT is lost', async (t) => {
  const world = await setUp(t);
  const { sound, storage, grant } = world;
  const { store } = grant.caller;
  const isShared = async () => (await sound.shares.of(store, 'alice')).given.length === 1;
  const cut = loseResponse(world, () => until('it is stored', isShared));
  const share = { owner: 'alice', user: 'bob', access: 'read' } as const;
  assert.equal(await storage.shares.set(store, share, 0), true);
  await cut;
});

it('PostgreSQL: a webhook is there once, and then deleted, if the response to a COMMIT is lost', async (t) => {
  const world = await setUp(t);
  const { sound, storage, grant } = world;
  const { caller, userName } = grant;
  const count = async () => (await sound.webhooks.list(caller)).length;
  const { store, user } = caller;
  const identity = { store, user, userName, id: '5f2c8d0e9b1a4c37', version: 0, lastPosition: 0 };
  const webhook = {
    ...identity,
    ...idle,
    url: 'https://receiver.example/',
    secret: '',
    cursor: '',
  };
  const created = loseResponse(world, () =>
    until('it is stored', async () => (await count()) === 1),
  );
  await storage.webhooks.set(webhook, caller);
  await created;
  assert.equal(await count(), 1);

  const deleted = loseResponse(world, () => until('it is gone', async () => (await count()) === 0));
  assert.equal(await storage.webhooks.remove(caller, webhook.id), true);
  await deleted;
  assert.equal(await storage.webhooks.remove(caller, webhook.id), false);
});

it('PostgreSQL: a change is stored once if another store of its transaction has not changed', async (t) => {
  const world = await setUp(t);
  const { sound, storage } = world;
  const grant = await identify(sound, await addToken(sound, 'bob', { store: 'south' }));
  assert.ok(grant);
  const isStored = async () => (await world.names()).length > 0;
  const cut = loseResponse(world, () => until('it is stored', isStored));
  const deleted = storage.plants.delete(grant.caller, 1);
  assert.equal((await world.create('first')).id, 1);
  assert.equal(await deleted, undefined);
  await cut;
  assert.deepEqual(await world.names(), ['first']);
});

it('PostgreSQL: the outcome is unknown if another process has written since', async (t) => {
  const world = await setUp(t);
  const cut = loseResponse(world, () => world.create('second', world.sound)); // waits for the lock
  await assert.rejects(world.create('first'), { kind: 'outcome-unknown' });
  await cut;
  assert.deepEqual(await world.names(), ['first', 'second']);
});

it('PostgreSQL: the outcome is unknown in time if nothing more is heard of a COMMIT', async (t) => {
  const world = await setUp(t);
  const startedMs = performance.now();
  const created = assert.rejects(world.create('first'), { kind: 'outcome-unknown' });
  await loseResponse(world, () => created);
  assert.ok(performance.now() - startedMs < maxOutcomeMs);
  assert.deepEqual(await world.names(), ['first']);
});

for (const [since, written] of [
  ['', []],
  [', also if another process has written since', ['second']],
] as const) {
  it(`PostgreSQL: a change is sent again if its COMMIT is lost${since}`, async (t) => {
    const { proxy, sound, sent, onCommit, create, names } = await setUp(t);
    onCommit((before) => {
      setImmediate(() => {
        proxy.isStuck = true;
        proxy.cutAll();
      });
      return before;
    });
    const created = create('first');
    await sent;
    for (const name of written) await create(name, sound);
    proxy.isStuck = false;
    proxy.cutAll();
    assert.equal((await created).id, written.length + 1);
    assert.deepEqual(await names(), [...written, 'first']);
  });
}

it('PostgreSQL: a change fails if the server responds to COMMIT with ROLLBACK', async (t) => {
  const { onCommit, create, names } = await setUp(t);
  onCommit((before, after) => Buffer.concat([before, queryOf('ROLLBACK'), after]));
  await assert.rejects(create('first'), { kind: 'internal-error' });
  assert.deepEqual(await names(), []);
  assert.equal((await create('second')).id, 1);
});
