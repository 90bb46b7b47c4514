import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';

import { shareAccesses } from '../../src/access/access.ts';
import { override, startApp, type Answer, type TestApp } from '../support/app.ts';
import type { Share, Shares } from '../../src/client/types.ts';
import { maxGivenShares } from '../../src/access/share-storage.ts';
import { itOnce as it } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { identify } from '../support/tokens.ts';

const scopes = ['plants:read', 'plants:write', 'shares:write'] as const;

it('shares a collection, shows it on both sides, and ends it from either', async (t) => {
  const app = await startApp(t);
  const [alice, bob] = [await app.token('alice', { scopes }), await app.token('bob', { scopes })];
  await app.call('POST', '/plants', { token: alice, json: { name: 'Fern' } });
  const list = async (token: string) => (await app.call('GET', '/plants', { token })).text;
  const shares = async (token: string) => (await app.call('GET', '/shares', { token })).json;
  const put = async (access: string) => {
    const { status, json } = await app.call('PUT', '/shares/bob', {
      token: alice,
      json: { access },
    });
    assert.deepEqual(json, { user: 'bob', access });
    return status;
  };
  const [none, one] = ['[]', '[{"name":"Fern","tag":""}]'];
  assert.equal(await list(bob), none);

  assert.equal(await put('read'), 201);
  assert.equal(await list(bob), one);
  assert.deepEqual(await shares(alice), { given: [{ user: 'bob', access: 'read' }], received: [] });
  assert.deepEqual(await shares(bob), { given: [], received: [{ user: 'alice', access: 'read' }] });
  assert.equal(await put('write'), 200);
  assert.equal(await put('write'), 200);
  assert.equal((await app.call('DELETE', '/plants/1', { token: bob })).status, 204);
  assert.equal(await list(alice), none);

  for (const [token, other] of [
    [bob, 'alice'],
    [alice, 'bob'],
  ] as const) {
    const end = async () => (await app.call('DELETE', `/shares/${other}`, { token })).status;
    assert.deepEqual([await end(), await end()], [204, 404]);
    assert.deepEqual(await shares(alice), { given: [], received: [] });
    assert.deepEqual(await shares(bob), { given: [], received: [] });
    await put('read');
  }
});

it('responds alike about users who exist, who do not, and who belong to another store', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice', { scopes });
  await app.token('bob');
  await app.token('carol', { store: 'elsewhere' });
  const answersFor = async (user: string) => {
    const target = `/shares/${user}`;
    const answers: Answer[] = [];
    for (const [method, json] of [
      ['DELETE', undefined],
      ['PUT', { access: 'read' }],
      ['PUT', { access: 'write' }],
      ['DELETE', undefined],
    ] as const) {
      answers.push(await app.call(method, target, { token, json }));
    }
    return answers.map(({ status, text, headers }) => {
      const named = text.replaceAll(user, '<user>');
      const names = [...headers.keys()].filter((each) => each !== 'content-length');
      return { status, named, names };
    });
  };
  const expected = await answersFor('bob');
  assert.deepEqual(
    expected.map(({ status }) => status),
    [404, 201, 200, 204],
  );
  assert.deepEqual(await answersFor('nobody'), expected);
  assert.deepEqual(await answersFor('carol'), expected);
});

it('requires shares:write to share, and that or plants:read to see shares', async (t) => {
  const app = await startApp(t);
  const status = async (method: string, token: string) => {
    const json = method === 'PUT' ? { access: 'read' } : undefined;
    const target = method === 'GET' ? '/shares' : '/shares/bob';
    const answer = await app.call(method, target, { token, json });
    return [answer.status, answer.headers.get('www-authenticate')];
  };
  const plain = await app.token('alice');
  const lacking = 'Bearer error="insufficient_scope", scope="shares:write"';
  assert.deepEqual(await status('PUT', plain), [403, lacking]);
  assert.deepEqual(await status('DELETE', plain), [403, lacking]);
  assert.deepEqual(await status('GET', plain), [200, null]);
  const sharing = await app.token('alice', { scopes: ['shares:write'] });
  assert.deepEqual(await status('PUT', sharing), [201, null]);
  assert.deepEqual(await status('GET', sharing), [200, null]);
  const reading = 'Bearer error="insufficient_scope", scope="plants:read"';
  const writing = await app.token('alice', { scopes: ['plants:write'] });
  assert.deepEqual(await status('GET', writing), [403, reading]);
});

void test('limits how much of unread responses it holds', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice', { scopes });
  const grant = await identify(app.storage, token);
  assert.ok(grant);
  const added = Array.from({ length: maxGivenShares }, (_, at) => {
    const user = '𝒳'.repeat(196) + String(at).padStart(4, '0');
    return app.storage.shares.set(grant.caller.store, { owner: 'alice', user, access: 'read' }, 0);
  });
  await Promise.all(added);
  const status = async () => (await app.call('GET', '/shares', { token })).status;
  assert.equal(await status(), 200);
  const head = `GET /shares HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const sockets: Socket[] = [];
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  // One after the other: requests that are refused at once leave nothing unread.
  await until('too much is unread', async () => {
    const socket = connect(app.port, '127.0.0.1').pause();
    socket.write(head.repeat(8)); // more than the buffers of the operating system hold
    sockets.push(socket);
    return (await status()) === 503;
  });
  for (const socket of sockets) socket.destroy();
  await until('the rest is discarded', async () => (await status()) === 200);
});

it('pages through both directions together, in the order of names', async (t) => {
  const lists: number[] = [];
  const app = await startApp(t, {
    baseUrl: 'https://plants.example/api',
    wrap: (storage) =>
      override(storage, {
        shares: {
          of: (store, user, query) => {
            lists.push(query?.limit ?? Infinity);
            return storage.shares.of(store, user, query);
          },
        },
      }),
  });
  const token = await app.token('alice', { scopes });
  const { caller } = (await identify(app.storage, token)) ?? {};
  assert.ok(caller);
  const owners = ['bob', 'a b&c', '\ufb00', '𝒳', 'Eve'];
  for (const [at, owner] of owners.entries()) {
    await app.token(owner);
    await app.storage.shares.set(caller.store, { owner, user: 'alice', access: 'read' }, at);
  }
  const users = ['bob', '𝒳', ...Array.from({ length: 300 }, (_, at) => `user ${at}`)];
  const shared = users.map((user) =>
    app.storage.shares.set(caller.store, { owner: 'alice', user, access: 'write' }, 1),
  );
  await Promise.all(shared);
  const whole = (await app.call('GET', '/shares', { token })).json as Shares;
  const inOrder = (names: string[]) =>
    names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const namesOf = (shares: Share[]) => shares.map(({ user }) => user);
  assert.deepEqual(namesOf(whole.given), inOrder(users));
  assert.deepEqual(namesOf(whole.received), inOrder(owners));
  assert.ok(lists.length > 1 && Math.max(...lists) <= 200, 'it is read in batches');

  for (const [limit, expectedPages] of [
    [2, 153],
    [250, 2],
    [305, 1],
    [1_000, 1],
  ] as const) {
    const found: Shares = { given: [], received: [] };
    let pages = 0;
    for (let next: string | undefined = `/shares?limit=${limit}`; next !== undefined; pages++) {
      const answer: Answer = await app.call('GET', next, { token });
      assert.equal(answer.status, 200, answer.text);
      const { given, received } = answer.json as Shares;
      const names = new Set(namesOf([...given, ...received]));
      assert.ok(names.size <= limit);
      found.given.push(...given);
      found.received.push(...received);
      const link = answer.headers.get('link');
      if (link !== null) assert.equal(names.size, limit);
      [, next] = /^<https:\/\/plants\.example\/api([^>]+)>; rel="next"$/.exec(link ?? '') ?? [];
    }
    assert.deepEqual(found, whole, `pages of ${limit}`);
    assert.equal(pages, expectedPages);
  }
  const after = await app.call('GET', '/shares?after=user+50', { token });
  assert.equal((after.json as Shares).given[0]?.user, 'user 51');
  assert.equal(after.headers.get('link'), null);
  const head = await app.call('HEAD', '/shares?limit=2', { token });
  assert.match(head.headers.get('link') ?? '', /\/shares\?limit=2&after=a%20b%26c>/);
  for (const query of ['limit=0', 'limit=1001', 'after=', 'after=%00', 'limit=1&limit=1']) {
    assert.equal((await app.call('GET', `/shares?${query}`, { token })).status, 400, query);
  }
});

it('takes any name that a user can have', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice', { scopes });
  const names = ['a/b', 'ä?&=%', ' spaced ', '𝒳'.repeat(200), 'a+b', '__proto__'];
  for (const user of names) {
    const target = `/shares/${encodeURIComponent(user)}`;
    const { status, json } = await share(app, target, token);
    assert.deepEqual([status, json], [201, { user, access: 'read' }], user);
  }
  const { json } = await app.call('GET', '/shares', { token });
  const shown = (json as { given: { user: string }[] }).given.map(({ user }) => user);
  assert.deepEqual(new Set(shown), new Set(names));
});

it('refuses oneself, bad names and bad bodies, and names each fault', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice', { scopes });
  const faultsOf = async (target: string, json: unknown) => {
    const answer = await app.call('PUT', target, { token, json });
    assert.equal(answer.status, 400, answer.text);
    const { errors } = answer.json as { errors: { parameter?: string; pointer?: string }[] };
    return errors.map(({ parameter, pointer }) => parameter ?? pointer);
  };
  const read = { access: 'read' };
  assert.deepEqual(await faultsOf('/shares/alice', read), ['user']);
  assert.deepEqual(await faultsOf('/shares/%20', read), ['user']);
  assert.deepEqual(await faultsOf('/shares/%00', read), ['user']);
  assert.deepEqual(await faultsOf(`/shares/${'x'.repeat(201)}`, read), ['user']);
  assert.deepEqual(await faultsOf('/shares/bob', {}), ['/access']);
  const headers = { 'content-type': 'application/json' };
  const malformed = await app.call('PUT', '/shares/bob', { token, body: '{', headers });
  assert.match(malformed.text, /an object like {\\"access\\":\\"read\\"}\./);
  assert.deepEqual(await faultsOf('/shares/bob', { access: 'all' }), ['/access']);
  assert.deepEqual(await faultsOf('/shares/bob', { access: ['read'] }), ['/access']);
  assert.deepEqual(await faultsOf('/shares/%20', { acces: 'read' }), ['user', '/access', '/acces']);
  assert.equal((await app.call('PUT', '/shares/', { token, json: read })).status, 404);
  assert.equal((await app.call('POST', '/shares/bob', { token, json: read })).status, 405);
  assert.deepEqual((await app.call('GET', '/shares', { token })).json, { given: [], received: [] });
});

async function share(app: TestApp, target: string, token: string): Promise<Answer> {
  return app.call('PUT', target, { token, json: { access: shareAccesses[0] } });
}
