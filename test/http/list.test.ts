import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, type TestContext } from 'node:test';
import type { PlantQuery } from '../../src/plants/plant-storage.ts';
import type { Storage } from '../../src/storage.ts';
import { call, override, startApp, type TestApp } from '../support/app.ts';
import { itOnce as it } from '../support/storages.ts';
import { identify } from '../support/tokens.ts';
import { until } from '../support/until.ts';

/** More than two batches of the stream, so that it has a first, a middle and a last one. */
const many = 2_345;

async function startFull(t: TestContext, wrap?: (storage: Storage) => Storage) {
  const app = await startApp(t, wrap && { wrap });
  const alice = await app.token('alice');
  const { caller } = (await identify(app.storage, alice)) ?? {};
  assert.ok(caller);
  await app.database.fill(ids.map(plantOf));
  return { ...app, alice, caller };
}

async function idsOf({ call: send }: TestApp, token: string, path: string): Promise<number[]> {
  const { status, json } = await send('GET', path, { token });
  assert.equal(status, 200);
  return (json as { id: number }[]).map(({ id }) => id);
}

const ids = Array.from({ length: many }, (_, at) => (at + 1) * 2);
const plantOf = (id: number) => ({ id, name: `n${id / 2}`, tag: id % 6 === 0 ? 'b' : 'a' });

describe('list', () => {
  it('without a limit contains every plant in ascending order, in the bytes of single reads', async (t) => {
    const app = await startFull(t);
    const whole = await app.call('GET', '/plants?fields=id,name,tag', { token: app.alice });
    assert.equal(whole.headers.get('link'), null);
    const singles = ids.map((id) => JSON.stringify(plantOf(id)));
    assert.equal(whole.text, `[${singles.join()}]`);
    for (let at = 0; at < many; at += 50) {
      const path = `/plants/${ids[at]}?fields=id,name,tag`;
      assert.equal((await app.call('GET', path, { token: app.alice })).text, singles[at]);
    }
  });

  it('returns at most the limit, and a Link if more follow', async (t) => {
    const app = await startFull(t);
    for (const limit of [1, 20, 100, 101, 999, 1_000]) {
      for (const after of [0, 2 * (many - limit) - 2, 2 * (many - limit)]) {
        const path = `/plants?limit=${limit}&after=${after}&fields=id`;
        const first = after / 2;
        assert.deepEqual(await idsOf(app, app.alice, path), ids.slice(first, first + limit));
        const last = after + 2 * limit;
        const isLast = first + limit === many;
        const next = `</plants?limit=${limit}&after=${last}&fields=id>; rel="next"`;
        const { headers } = await app.call('GET', path, { token: app.alice });
        assert.equal(headers.get('link'), isLast ? null : next);
      }
    }
  });

  it('answers HEAD as GET, without reading more than GET sends at once', async (t) => {
    let plants = 0;
    const app = await startFull(t, (storage) =>
      observed(storage, ({ limit }) => void (plants += limit)),
    );
    await app.database.fill(
      Array.from({ length: 20_000 }, (_, at) => ({
        id: 10_001 + at,
        tag: 'long',
        name: 'x'.repeat(200),
      })),
    );
    for (const [query, most] of [
      ['limit=20&fields=id', 20],
      ['limit=1000&fields=id&fields=name', 1_200],
      ['tag=long&limit=1000&after=12000', 2_000],
      ['limit=1000&after=29999', 2_000],
      ['', 4_000],
      ['tag=none', 1_000],
      ['q=LÖNG&limit=1000&after=12000', 2_000],
      ['q=none', 1_000],
    ] as const) {
      const [path, token] = [`/plants?${query}`, app.alice];
      const got = await app.call('GET', path, { token });
      plants = 0;
      const head = await app.call('HEAD', path, { token });
      assert.ok(plants <= most, `${path}: ${plants} plants`);
      assert.equal(head.status, 200);
      assert.equal(head.text, '');
      for (const name of ['link', 'content-type', 'content-length'])
        assert.equal(head.headers.get(name), got.headers.get(name), `${path}: ${name}`);
    }
  });

  it('refuses a page of more than 1,000 plants, and says how to get all', async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    for (const limit of [1_001, 2_147_483_647]) {
      const { status, json } = await app.call('GET', `/plants?limit=${limit}`, { token });
      assert.equal(status, 400);
      const detail =
        '"limit" is too large. Use an integer from 1 to 1000, or no "limit" for the whole list.';
      assert.deepEqual((json as { errors: unknown }).errors, [{ parameter: 'limit', detail }]);
    }
  });

  it('follows Link to the end with all other parameters', async (t) => {
    const app = await startFull(t);
    for (const limit of [100, 1_000]) {
      const seen: number[] = [];
      let next: string | undefined = `/plants?tag=a&limit=${limit}&fields=id,tag`;
      while (next !== undefined) {
        const { json, headers } = await app.call('GET', next, { token: app.alice });
        const page = json as { id: number; tag: string }[];
        assert.ok(page.length <= limit && page.every(({ tag }) => tag === 'a'));
        seen.push(...page.map(({ id }) => id));
        [, next] = /^<(.+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
      }
      assert.deepEqual(
        seen,
        ids.filter((id) => (id / 2) % 3 !== 0),
      );
    }
  });

  it('filters by the exact tag, with any text', async (t) => {
    const app = await startApp(t);
    const alice = await app.token('alice');
    const tags = ['a b', 'a+b', 'é', 'e\u0301', '&=?#/', '%41', 'A', '', '"'];
    for (const tag of tags) {
      await app.call('POST', '/plants', { token: alice, json: { name: `is ${tag}`, tag } });
    }
    for (const tag of tags) {
      const query = new URLSearchParams({ tag }).toString();
      const { json } = await app.call('GET', `/plants?${query}`, { token: alice });
      assert.deepEqual(json, [{ name: `is ${tag}`, tag }]);
    }
    const { headers } = await app.call('POST', '/plants', {
      token: alice,
      json: { name: '2', tag: 'a b' },
    });
    assert.equal(headers.get('location'), `/plants/${tags.length + 1}`);
    const page = await app.call('GET', '/plants?tag=a%20b&limit=1', { token: alice });
    assert.equal(page.headers.get('link'), '</plants?limit=1&after=1&tag=a%20b>; rel="next"');
  });
});

it('searches names and tags, page by page, even if a page is short', async (t) => {
  const app = await startApp(t);
  const alice = await app.token('alice');
  const plants = [{ name: 'Łódź' }, { name: 'Aloe', tag: 'LODZ 2' }, { name: 'Ficus' }];
  for (const json of plants) await app.call('POST', '/plants', { token: alice, json });
  const found: string[] = [];
  let next: string | undefined = '/plants?limit=1&q=l%C3%B3dz&fields=name';
  const links: (string | null)[] = [];
  while (next !== undefined) {
    const { text, headers } = await app.call('GET', next, { token: alice });
    found.push(text);
    links.push(headers.get('link'));
    [, next] = /^<(.+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
  }
  assert.deepEqual(found, ['[{"name":"Łódź"}]', '[{"name":"Aloe"}]']);
  assert.deepEqual(links, ['</plants?limit=1&after=1&q=l%C3%B3dz&fields=name>; rel="next"', null]);
  const searches = [`q=${'a'.repeat(100)}`, `q=${'%F0%9F%8C%B5'.repeat(100)}`, 'q=+z+', 'q=%25'];
  for (const search of searches) {
    assert.equal((await app.call('GET', `/plants?${search}`, { token: alice })).text, '[]', search);
  }
  const whole = await app.call('GET', '/plants?q=lodz&tag=LODZ%202', { token: alice });
  assert.deepEqual(whole.json, [{ name: 'Aloe', tag: 'LODZ 2' }]);
});

it('accepts repeated fields and fields with commas', async (t) => {
  const app = await startApp(t);
  const alice = await app.token('alice');
  const path = '/plants?fields=id&fields=name';
  const created = await app.call('POST', path, { token: alice, json: { name: 'a' } });
  assert.equal(created.text, '{"id":1,"name":"a"}');
  await app.call('POST', path, { token: alice, json: { name: 'b' } });
  const page = await app.call('GET', `${path}&limit=1`, { token: alice });
  assert.equal(page.text, '[{"id":1,"name":"a"}]');
  const link = '</plants?limit=1&after=1&fields=id&fields=name>; rel="next"';
  assert.equal(page.headers.get('link'), link);
});

it('shows a change by another program at once', async (t) => {
  const app = await startApp(t);
  const alice = await app.token('alice');
  await app.call('POST', '/plants', { token: alice, json: { name: 'before' } });
  const list = async () => (await app.call('GET', '/plants?limit=20', { token: alice })).text;
  for (let round = 0; round < 3; round++)
    assert.equal(await list(), '[{"name":"before","tag":""}]');
  await app.database.run("UPDATE plants SET name = 'after'");
  for (let round = 0; round < 3; round++) assert.equal(await list(), '[{"name":"after","tag":""}]');
});

it('reads long pages of many users side by side', async (t) => {
  const users = 30;
  let reads = 0;
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const app = await startApp(t, {
    wrap: (storage) =>
      observed(storage, () => {
        reads++;
        return held;
      }),
  });
  const tokens = await Promise.all(Array.from({ length: users }, (_, at) => app.token(`u${at}`)));
  const pages = tokens.map((token) => app.call('GET', '/plants?limit=1000&q=a', { token }));
  await until('all pages are read', () => reads === users).finally(release);
  for (const { status } of await Promise.all(pages)) assert.equal(status, 200);
});

describe('streamed list', () => {
  it('stops reading when the client goes away, and waits for a slow one', async (t) => {
    const reads: number[] = [];
    const app = await startFull(t, (storage) =>
      observed(storage, (query) => void reads.push(query.after)),
    );
    // Long names, so that the list is more than the buffers between server and client hold.
    await app.database.fill(
      Array.from({ length: 40_000 }, (_, at) => ({
        id: 10_001 + at,
        tag: '',
        name: '🌵'.repeat(200),
      })),
    );
    reads.length = 0;
    const socket = connect({ host: '127.0.0.1', port: app.port });
    socket.write(`GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.alice}\r\n\r\n`);
    await once(socket, 'readable');
    socket.pause();
    // Other requests get responses meanwhile, and the stream waits for its reader.
    for (let turn = 0; turn < 50; turn++) await call(`${app.address}/livez`, 'GET');
    const stalledAt = reads.length;
    const batches = 500; // of 64 KiB, some 32 MB
    assert.ok(stalledAt < batches / 2, `${stalledAt} batches were read without a reader`);
    socket.destroy();
    for (let turn = 0; turn < 50; turn++) await call(`${app.address}/livez`, 'GET');
    assert.ok(reads.length <= stalledAt + 2, 'it continued without a client');
  });
});

/** The real storage, which calls `look` before each read of a list. */
function observed(storage: Storage, look: (query: PlantQuery) => void | Promise<void>): Storage {
  return override(storage, {
    plants: {
      list: async (caller, query) => {
        await look(query);
        return storage.plants.list(caller, query);
      },
    },
  });
}
