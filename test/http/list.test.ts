/**
 * Lists and their pages. test/model.test.ts has what is in them, and in which order.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Share, Shares } from '../../src/client/types.ts';
import { maxUnreadBytesOfUser } from '../../src/http/limits.ts';
import { storageUnavailable } from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { inNewStore, override, startApp, type Answer } from '../support/app.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';
import { identify } from '../support/tokens.ts';
import { until } from '../support/until.ts';

/** More than two batches of the stream, so that it has a first, a middle and a last one. */
const short = Array.from({ length: 2_345 }, (_, at) => ({
  id: 100_000 + 2 * at,
  name: `n${at}`,
  tag: at % 3 === 0 ? 'b' : 'a',
}));
const ids = short.map(({ id }) => id);
/** More text than the buffers between server and client hold. */
const long = Array.from({ length: 20_000 }, (_, at) => ({
  id: at + 1,
  name: '🌵'.repeat(200),
  tag: 'long',
}));

/** The limits of the reads of lists of plants, shares and tokens. `held` is over before a list of plants is read. */
const reads = { plants: [] as number[], shares: [] as number[], tokens: [] as number[] };
let held: Promise<void> | undefined;
/** Reads of plants after which the storage fails. */
let failAfterReads = Infinity;
/** What was read of plants, in bytes, and how much of it was not yet written to the client at the start of each read. */
const memory = { read: 0, unwritten: [] as number[] };
let server: Server | undefined;
/** The connection of a stream, at the side of the service. */
let accepted: Socket | undefined;
const app = await startApp(fileScope(), {
  baseUrl: 'https://plants.example/x',
  wrap: observed,
  addRoutes: (instance) => ({ server } = instance),
});
const alice = await app.user('alice');
await app.database.fill(long.concat(short)); // plants of the only user
/** All lists of plants from here on have only the short ones. */
const fromShort = `after=${long.length}`;

function observed(storage: Storage): Storage {
  return override(storage, {
    plants: {
      list: async (caller, query) => {
        reads.plants.push(query.limit);
        await held;
        if (reads.plants.length > failAfterReads) throw storageUnavailable();
        memory.unwritten.push(memory.read - (accepted?.bytesWritten ?? 0));
        const page = await storage.plants.list(caller, query);
        memory.read += Buffer.byteLength(page.json);
        return page;
      },
    },
    shares: {
      of: async (store, user, query) => {
        reads.shares.push(query?.limit ?? Infinity);
        return storage.shares.of(store, user, query);
      },
    },
    identity: {
      listTokens: async (query) => {
        reads.tokens.push(query.limit);
        return storage.identity.listTokens(query);
      },
    },
  });
}

/** The maximum number of plants that were read. */
function plantsRead(): number {
  return reads.plants.reduce((sum, limit) => sum + limit, 0);
}

function nextOf({ headers }: Answer): string | undefined {
  const link = headers.get('link');
  if (link === null) return undefined;
  const [, next] = /^<https:\/\/plants\.example\/x([^>]+)>; rel="next"$/.exec(link) ?? [];
  return next ?? assert.fail(link);
}

it('a list without a limit has every plant in ascending order, in the bytes of single reads', async () => {
  const whole = await alice('GET', `/plants?fields=id,name,tag&${fromShort}`);
  assert.equal(whole.headers.get('link'), null);
  assert.equal(whole.text, JSON.stringify(short));
  const single = await alice('GET', `/plants/${ids[1]}?fields=id,name,tag`);
  assert.equal(single.text, JSON.stringify(short[1]));
});

it('HEAD responds as GET, without reading more than GET sends at once', async () => {
  for (const [query, most] of [
    ['limit=20&fields=id', 20],
    ['limit=1000&fields=id&fields=name', 1_200],
    ['tag=long&limit=1000&after=2000', 2_000],
    [`limit=1000&after=${long.length - 1}`, 2_000],
    ['', 4_000],
    ['tag=none', 1_000],
    ['q=LÖNG&limit=1000&after=2000', 2_000],
    ['q=none', 1_000],
  ] as const) {
    const path = `/plants?${query}`;
    reads.plants = [];
    const head = await alice('HEAD', path);
    assert.ok(plantsRead() <= most, `${path}: ${plantsRead()} plants`);
    assert.deepEqual([head.status, head.text], [200, '']);
    if (query === '') continue; // GET would send 16 MB
    const got = await alice('GET', path);
    for (const name of ['link', 'content-type', 'content-length'])
      assert.equal(head.headers.get(name), got.headers.get(name), `${path}: ${name}`);
  }
});

it('the pages of each list lead to each other with all parameters, and are the whole list', async () => {
  const { user, storage, token } = inNewStore(app);
  const bob = await user('bob');
  const { caller } = (await identify(storage, await token('bob'))) ?? assert.fail();
  const text = Array.from({ length: 30 }, (_, at) => ({ name: `n${at}`, tag: 'a b' }));
  await Promise.all(text.map((plant) => storage.plants.create(caller, plant)));
  await Promise.all(text.map((_, at) => storage.plants.delete(caller, at + 1)));
  await Promise.all(text.map((plant) => storage.plants.create(caller, plant)));
  // As many as a batch does not hold.
  const given = Array.from({ length: 300 }, (_, at) => ({ owner: 'bob', user: `user ${at}` }));
  const received = ['a b&c', '\ufb00', '𝒳', 'Eve', 'user 7'].map((owner) => ({
    owner,
    user: 'bob',
  }));
  for (const { owner } of received) await token(owner);
  const { shares } = storage;
  const share = (one: Omit<Share, 'access'> & { owner: string }) =>
    shares.set(caller.store, { ...one, access: 'read' }, 0);
  await Promise.all([...given, ...received].map(share));
  for (let tokens = 2; tokens < 130; tokens++) await token('bob');

  for (const [path, items, second, limits] of [
    ['/plants?q=%C3%A1%20B', 30, /\?limit=1&after=31&q=%C3%A1%20B$/, [7]],
    [
      '/plants?tag=a%20b&fields=id,tag',
      30,
      /\?limit=1&after=31&tag=a%20b&fields=id&fields=tag$/,
      [7, 15],
    ],
    ['/bin?', 30, /\?limit=1&after=\d+$/, [7, 15, 30]],
    ['/shares?', 304, /\?limit=1&after=Eve$/, [2, 250, 304]],
    ['/tokens?', 130, /\?limit=1&after=\w{9}-\w{16}$/, [60, 65, 1_000]],
  ] as const) {
    const whole = await bob('GET', path);
    assert.equal(nextOf(whole), undefined);
    assert.match(nextOf(await bob('HEAD', `${path}&limit=1`)) ?? '', second);
    for (const limit of limits) {
      const pages: unknown[] = [];
      for (let next: string | undefined = `${path}&limit=${limit}`; next !== undefined;) {
        const page: Answer = await bob('GET', next);
        assert.equal(page.status, 200, page.text);
        pages.push(page.json);
        next = nextOf(page);
        if (next !== undefined) assert.equal(namesOf(page.json).size, limit, path);
      }
      assert.deepEqual(joined(pages), whole.json, `${path} ${limit}`);
      assert.equal(pages.length, Math.ceil(items / limit), `${path} ${limit}`);
    }
  }
  const after = (await bob('GET', '/shares?after=user+50')).json as Shares;
  assert.equal(after.given[0]?.user, 'user 51');
  assert.ok(
    Math.max(...reads.shares) <= 200 && Math.max(...reads.tokens) <= 51,
    'it reads batches',
  );
});

/** The items of a page, which are those of one name for shares. */
function namesOf(json: unknown): Set<unknown> {
  if (Array.isArray(json)) return new Set(json);
  const { given, received } = json as Shares;
  return new Set([...given, ...received].map(({ user }) => user));
}

function joined(pages: readonly unknown[]): unknown {
  if (Array.isArray(pages[0])) return pages.flat();
  const shares = pages as Shares[];
  const given = shares.flatMap((page) => page.given);
  return { given, received: shares.flatMap((page) => page.received) };
}

it('shows a change by another program at once', async (t) => {
  const { user, database } = await startApp(t);
  const bob = await user('bob');
  await bob('POST', '/plants', { json: { name: 'before' } });
  for (const name of ['before', 'after']) {
    await database.run(`UPDATE plants SET name = '${name}'`);
    for (let round = 0; round < 3; round++) {
      assert.deepEqual((await bob('GET', '/plants?limit=20')).json, [{ name, tag: '' }]);
    }
  }
});

it('reads long pages of many users side by side', async () => {
  const { user } = inNewStore(app);
  const users = await Promise.all(Array.from({ length: 30 }, (_, at) => user(`user ${at}`)));
  const { promise, resolve: release } = Promise.withResolvers<void>();
  held = promise;
  reads.plants = [];
  const pages = users.map((send) => send('GET', '/plants?limit=1000&q=a'));
  await until('all pages are read', () => reads.plants.length === users.length).finally(release);
  for (const { status } of await Promise.all(pages)) assert.equal(status, 200);
});

/** A client of alice that reads nothing of the whole list. */
async function startUnread(): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: app.port });
  const authorization = `Authorization: Bearer ${await app.token('alice')}`;
  socket.write(`GET /plants HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`);
  await once(socket, 'readable');
  return socket.pause();
}

it('a stream stops when the client goes away, and waits for a slow one', async () => {
  reads.plants = [];
  const socket = await startUnread();
  // Other requests get responses meanwhile, and the stream waits for its reader.
  for (let turn = 0; turn < 50; turn++) await app.call('GET', '/livez');
  const stalledAt = reads.plants.length;
  const read = plantsRead();
  assert.ok(read < 0.75 * long.length, `${read} plants were read without a reader`);
  socket.destroy();
  for (let turn = 0; turn < 50; turn++) await app.call('GET', '/livez');
  assert.ok(reads.plants.length <= stalledAt + 2, 'it continued without a client');
});

it('a stream reads the next batch once the client has the one before', async () => {
  server?.once('connection', (socket: Socket) => (accepted = socket));
  Object.assign(memory, { read: 0, unwritten: [] });
  const socket = await startUnread();
  for (let turn = 0; turn < 50; turn++) await app.call('GET', '/livez');
  const { unwritten } = memory;
  memory.unwritten = [];
  socket.destroy();
  // The first chunk takes several reads, and is written when the next one is read.
  const tooEarly = unwritten.slice(4).filter((bytes) => bytes > 0);
  assert.ok(unwritten.length > 10);
  assert.deepEqual(tooEarly, []);
});

it('a stream whose storage fails is cut off, so that nobody takes it for the whole list', async (t) => {
  reads.plants = [];
  failAfterReads = 20;
  t.after(() => (failAfterReads = Infinity));
  const response = await fetch(`${app.address}/plants`, {
    headers: { authorization: `Bearer ${await app.token('alice')}` },
  });
  assert.equal(response.status, 200);
  await assert.rejects(response.text(), { name: 'TypeError' });
});

it('the unread responses of a user are limited', async (t) => {
  const sockets: Socket[] = [];
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  const page = () => alice('GET', '/plants?limit=100');
  const bob = await inNewStore(app).user('bob');
  const needed = maxUnreadBytesOfUser / (256 * 1024); // of a stream
  for (let count = 0; count < needed; count++) {
    assert.equal((await page()).status, 200, `${count} streams are unread`);
    sockets.push(await startUnread());
  }
  reads.shares = [];
  const shares = alice('GET', '/shares');
  assert.match((await page()).text, /overloaded.*Too many long responses are unread/);
  assert.equal((await bob('GET', '/plants')).status, 200);
  assert.deepEqual(reads.shares, [], 'a list that is sent as a whole waits');
  for (const socket of sockets) socket.destroy();
  await until('the rest is discarded', async () => (await page()).status === 200);
  assert.equal((await shares).status, 200);
});
