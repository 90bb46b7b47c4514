import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { describe } from 'node:test';
import type { Grant } from '../../src/access/access.ts';
import { TokenUses } from '../../src/http/auth/token-uses.ts';
import { isToken, makeToken } from '../../src/access/token.ts';
import { override, startApp, type Answer, type TestApp } from '../support/app.ts';
import { itOnce as it, testDatabase } from '../support/storages.ts';
import { identify, idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';

interface ShownToken {
  id: string;
  token?: string;
  state: string;
  [field: string]: unknown;
}

/** Creates a token with another one. */
async function created({ call }: TestApp, token: string, json?: object): Promise<ShownToken> {
  const answer = await call('POST', '/tokens', { token, ...(json && { json }) });
  assert.equal(answer.status, 201, answer.text);
  return answer.json as ShownToken; // as the next test checks
}

async function listed({ call }: Pick<TestApp, 'call'>, token: string): Promise<ShownToken[]> {
  const { status, json } = await call('GET', '/tokens', { token });
  assert.equal(status, 200);
  return json as ShownToken[]; // as the tests below check
}

describe('POST /tokens', () => {
  it('creates a twin of the token without a body, and shows it once', async (t) => {
    const app = await startApp(t, { baseUrl: 'https://plants.example/api' });
    const expiresAt = '2100-01-31T12:00:00.000Z';
    const alice = await app.token('alice', {
      store: 'north',
      role: 'manager',
      scopes: ['plants:write', 'plants:read'],
      expiresAtMs: Date.parse(expiresAt),
    });
    const headers = { 'content-type': 'application/json' };
    for (const options of [{}, { headers }, { json: {} }]) {
      const before = Date.now();
      const answer = await app.call('POST', '/tokens', { token: alice, ...options });
      assert.equal(answer.status, 201);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      const { token = '', createdAt, ...rest } = answer.json as ShownToken; // checked here
      assert.ok(isToken(token));
      assert.ok(Date.parse(String(createdAt)) >= before);
      const id = idOf(token);
      assert.equal(answer.headers.get('location'), `https://plants.example/api/tokens/${id}`);
      const scopes = ['plants:read', 'plants:write'];
      assert.deepEqual(rest, { id, label: '', scopes, state: 'active', current: false, expiresAt });
      const { json } = await app.call('GET', '/token', { token });
      const shown = { id, user: 'alice', store: 'north', role: 'manager', scopes, expiresAt };
      assert.deepEqual(json, shown);
    }
    const tokens = await app.call('GET', '/tokens', { token: alice });
    assert.ok(!tokens.text.includes('plant_'));
  });

  it('creates a token with fewer scopes, an earlier expiry and a label', async (t) => {
    const app = await startApp(t);
    const alice = await app.token('alice');
    const json = { scopes: ['plants:read'], expiresAt: '2100-02-28t13:30:00.5+01:30', label: 'a' };
    const { token = '', ...shown } = await created(app, alice, json);
    assert.partialDeepStrictEqual(shown, { ...json, expiresAt: '2100-02-28T12:00:00.500Z' });
    const refused = await app.call('POST', '/plants', { token, json: { name: 'a' } });
    assert.equal(refused.status, 403);
    const { expiresAt } = await created(app, token, { expiresAt: '2100-02-28T12:00:00.499Z' });
    assert.equal(expiresAt, '2100-02-28T12:00:00.499Z');
  });

  it('refuses more scopes than the token has, and names them', async (t) => {
    const app = await startApp(t);
    const alice = await app.token('alice', { scopes: ['plants:read'] });
    const json = { scopes: ['plants:read', 'shares:write', 'plants:write'] };
    const { status, headers, text } = await app.call('POST', '/tokens', { token: alice, json });
    assert.equal(status, 403);
    const challenge = 'Bearer error="insufficient_scope", scope="shares:write plants:write"';
    assert.equal(headers.get('www-authenticate'), challenge);
    assert.match(text, /so a new token cannot have shares:write plants:write\./);
    assert.equal((await listed(app, alice)).length, 1);
  });

  it('refuses an expiry that is past, or later than that of the token', async (t) => {
    const app = await startApp(t);
    const expiresAtMs = Date.now() + 60_000;
    const alice = await app.token('alice', { expiresAtMs });
    for (const [timeMs, reason] of [
      [Date.now(), /is in the past/],
      [expiresAtMs + 1, /is after your own token expires\. Send 20\d\d-/],
    ] as const) {
      const json = { expiresAt: new Date(timeMs).toISOString() };
      const refused = await app.call('POST', '/tokens', { token: alice, json });
      assert.equal(refused.status, 400);
      assert.partialDeepStrictEqual(refused.json, { errors: [{ pointer: '/expiresAt' }] });
      assert.match(refused.text, reason);
    }
    await created(app, alice, { expiresAt: new Date(expiresAtMs).toISOString() });
    assert.equal((await listed(app, alice)).length, 2);
  });

  it('refuses invalid bodies, and creates nothing', async (t) => {
    const app = await startApp(t);
    const alice = await app.token('alice');
    const bodies: [json: unknown, pointer: string][] = [
      [{ scopes: [] }, '/scopes'],
      [{ scopes: ['plants:read', 'plants:read'] }, '/scopes'],
      [{ scopes: ['plants'] }, '/scopes'],
      [{ scopes: 'plants:read' }, '/scopes'],
      [{ expiresAt: '2100-02-30T00:00:00Z' }, '/expiresAt'],
      [{ expiresAt: '2100-02-28T00:00:00' }, '/expiresAt'],
      [{ expiresAt: '9999-12-31T23:59:59-00:01' }, '/expiresAt'],
      [{ expiresAt: 4_102_444_800 }, '/expiresAt'],
      [{ expiresAt: null }, '/expiresAt'],
      [{ label: 'a\nb' }, '/label'],
      [{ label: 'x'.repeat(101) }, '/label'],
      [{ user: 'bob' }, '/user'],
      [[], ''],
    ];
    for (const [json, pointer] of bodies) {
      const { status, json: problem } = await app.call('POST', '/tokens', { token: alice, json });
      assert.equal(status, 400, JSON.stringify(json));
      assert.partialDeepStrictEqual(problem, { errors: [{ pointer }] });
    }
    assert.equal((await app.call('POST', '/tokens', { token: alice, body: '{}' })).status, 415);
    const headers = { 'content-type': 'application/json' };
    const malformed = await app.call('POST', '/tokens', { token: alice, body: '{', headers });
    assert.equal(malformed.status, 400);
    assert.match(
      malformed.text,
      /an object like {\\"scopes\\":\[\\"plants:read\\"\],\\"label\\":\\"phone\\"}\./,
    );
    assert.equal((await app.call('POST', '/tokens?user=bob', { token: alice })).status, 400);
    assert.equal((await app.call('POST', '/tokens')).status, 401);
    assert.equal((await listed(app, alice)).length, 1);
  });

  it('refuses a token that expires before the body arrives', async (t) => {
    for (const body of ['{}', '{"expiresAt":"2100-01-01T00:00:00Z"}']) {
      const { promise: isIdentified, resolve } = Promise.withResolvers<void>();
      const app = await startApp(t, {
        wrap: (storage) =>
          override(storage, {
            identity: {
              identify: async (credential) =>
                storage.identity.identify(credential).finally(resolve),
            },
          }),
      });
      const expiresAtMs = Date.now() + 1_000;
      const token = await app.token('alice', { expiresAtMs });
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const sent = request(`${app.address}/tokens`, { method: 'POST', headers });
      const responded = once(sent, 'response');
      sent.write(' ');
      await isIdentified;
      await until('the token has expired', () => Date.now() >= expiresAtMs);
      sent.end(body);
      const [response] = await responded;
      assert.equal(response.statusCode, 401, await textOf(response));
      assert.equal((await app.storage.identity.listTokens({ limit: 10 })).length, 1);
    }
  });
});

describe('GET /tokens', () => {
  it('pages through them in the order of their ids', async (t) => {
    const lists: number[] = [];
    const app = await startApp(t, {
      wrap: (storage) =>
        override(storage, {
          identity: {
            listTokens: (query) => {
              lists.push(query.limit);
              return storage.identity.listTokens(query);
            },
          },
        }),
    });
    const alice = await app.token('alice');
    await app.token('bob');
    for (let made = 1; made < 130; made++) await app.token('alice');
    const whole = await listed(app, alice);
    const ids = whole.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, 130);
    assert.ok(lists.length > 1 && Math.max(...lists) <= 51, 'it is read in batches');
    for (const [limit, expectedPages] of [
      [60, 3],
      [65, 2],
      [120, 2],
      [1_000, 1],
    ] as const) {
      const found: ShownToken[] = [];
      let pages = 0;
      for (let next: string | undefined = `/tokens?limit=${limit}`; next !== undefined; pages++) {
        const answer: Answer = await app.call('GET', next, { token: alice });
        assert.equal(answer.status, 200, answer.text);
        const page = answer.json as ShownToken[];
        assert.ok(page.length <= limit);
        found.push(...page);
        const link = answer.headers.get('link') ?? '';
        [, next] = /^<(\/tokens\?[^>]+)>; rel="next"$/.exec(link) ?? [];
        if (next !== undefined)
          assert.equal(next, `/tokens?limit=${limit}&after=${page.at(-1)?.id}`);
      }
      assert.deepEqual(found, whole, `pages of ${limit}`);
      assert.equal(pages, expectedPages);
    }
    const after = await app.call('GET', `/tokens?after=${ids[127]}`, { token: alice });
    assert.deepEqual(after.json, whole.slice(128));
    for (const query of ['limit=0', 'limit=1001', 'after=', 'after=x', 'after=1', 'state=active']) {
      const { status, json } = await app.call('GET', `/tokens?${query}`, { token: alice });
      assert.equal(status, 400, query);
      const [name = ''] = query.split('=');
      assert.partialDeepStrictEqual(json, { errors: [{ parameter: name }] });
    }
  });

  it("lists the user's own tokens in every state", async (t) => {
    const app = await startApp(t);
    const alice = await app.token('alice', { scopes: ['plants:read'] });
    await app.token('bob');
    await app.token('alice', { store: 'elsewhere' });
    const phone = await created(app, alice, { label: 'phone' });
    const expired = await app.token('alice', { expiresAtMs: Date.now() });
    await app.call('DELETE', `/tokens/${phone.id}`, { token: alice });
    const tokens = await listed(app, alice);
    const byId = new Map(tokens.map((token) => [token.id, token]));
    assert.equal(byId.size, 3);
    const own = { ...byId.get(idOf(alice)) };
    delete own['createdAt'];
    assert.deepEqual(own, {
      id: idOf(alice),
      label: '',
      scopes: ['plants:read'],
      state: 'active',
      current: true,
    });
    assert.partialDeepStrictEqual(byId.get(phone.id), {
      label: 'phone',
      state: 'revoked',
      current: false,
    });
    assert.ok(Date.parse(String(byId.get(phone.id)?.['revokedAt'])) <= Date.now());
    assert.equal(byId.get(idOf(expired))?.state, 'expired');
    assert.deepEqual(await listed(app, alice), tokens);
  });
});

describe('DELETE /token and DELETE /tokens/{id}', () => {
  const assertRefused = ({ status, text }: Answer) => {
    assert.equal(status, 401);
    assert.match(text, /The token is revoked/);
  };

  it('revokes the token that asks, for every process from the next request on', async (t) => {
    const app = await startApp(t);
    const other = await startApp(t, { open: () => app.database.open() });
    const [alice, second] = [await app.token('alice'), await app.token('alice')];
    for (const { call } of [app, other]) {
      assert.equal((await call('GET', '/plants', { token: alice })).status, 200);
    }
    const { status, text } = await app.call('DELETE', '/token', { token: alice });
    assert.deepEqual([status, text], [204, '']);
    assertRefused(await other.call('GET', '/plants', { token: alice }));
    assertRefused(await app.call('DELETE', '/token', { token: alice }));
    assert.equal((await other.call('GET', '/plants', { token: second })).status, 200);
  });

  it('revokes a token by its id, and responds the same when it is repeated', async (t) => {
    const app = await startApp(t);
    const other = await startApp(t, { open: () => app.database.open() });
    const alice = await app.token('alice', { scopes: ['plants:read'] });
    const { token = '', id } = await created(app, alice);
    assert.equal((await other.call('GET', '/plants', { token })).status, 200);
    for (let round = 0; round < 2; round++) {
      const { status, text } = await app.call('DELETE', `/tokens/${id}`, { token: alice });
      assert.deepEqual([status, text], [204, '']);
      assertRefused(await other.call('GET', '/plants', { token }));
    }
    const own = await app.call('DELETE', `/tokens/${idOf(alice)}`, { token: alice });
    assert.equal(own.status, 204);
    assertRefused(await other.call('GET', '/plants', { token: alice }));
  });

  it('refuses to revoke a token that grants more, or that it was created with', async (t) => {
    const app = await startApp(t);
    const [alice, reading] = [
      await app.token('alice'),
      await app.token('alice', { scopes: ['plants:read'] }),
    ];
    const child = await created(app, alice);
    const lacking = 'Bearer error="insufficient_scope", scope="plants:write"';
    for (const [token, kind, challenge] of [
      [reading, 'insufficient-scope', lacking],
      [child.token ?? '', 'token-restricted', null],
    ] as const) {
      const refused = await app.call('DELETE', `/tokens/${idOf(alice)}`, { token });
      assert.deepEqual([refused.status, refused.headers.get('www-authenticate')], [403, challenge]);
      assert.partialDeepStrictEqual(refused.json, { type: `/problems/${kind}` });
    }
    const states = (await listed(app, alice)).map(({ state }) => state);
    assert.deepEqual(states, ['active', 'active', 'active']);
  });

  it('responds alike to the id of another user, an unknown one, and text that is no id', async (t) => {
    const { call, token } = await startApp(t);
    const [alice, bob] = [await token('alice'), await token('bob')];
    const namesake = await token('alice', { store: 'elsewhere' });
    const ids = [idOf(bob), idOf(namesake), idOf(makeToken(1)), 'x', '%00', idOf(alice).slice(1)];
    ids.push(idOf(alice).toUpperCase().replace(/^\d+$/, 'A'), 'a'.repeat(4_000));
    const texts = new Set<string>();
    for (const id of ids) {
      const { status, text } = await call('DELETE', `/tokens/${id}`, { token: alice });
      assert.equal(status, 404, id);
      texts.add(text);
    }
    assert.equal(texts.size, 1);
    for (const one of [alice, bob, namesake]) {
      assert.equal((await call('GET', '/token', { token: one })).status, 200);
    }
  });
});

describe('the last use of a token', () => {
  it('is shown to the minute as soon as the service is stopping', async (t) => {
    const stop = new AbortController();
    const app = await startApp(t, { stopping: stop.signal });
    const [alice, unused] = [await app.token('alice'), await app.token('alice')];
    const expired = await app.token('alice', { expiresAtMs: Date.now() });
    const firstMs = Date.now();
    for (const token of [alice, alice, expired]) await app.call('GET', '/plants', { token });
    const lastUses = async () => {
      const tokens = await app.storage.identity.listTokens({ limit: 10 });
      return new Map(tokens.map(({ id, lastUsedAtMs }) => [id, lastUsedAtMs]));
    };
    assert.equal((await lastUses()).get(idOf(alice)), undefined, 'not written yet');
    stop.abort(); // the drain after it can take longer than the rest of the stop
    await until('it is written', async () => (await lastUses()).get(idOf(alice)) !== undefined);
    const uses = await lastUses();
    const usedAtMs = uses.get(idOf(alice)) ?? 0;
    assert.equal(usedAtMs % 60_000, 0);
    assert.ok(usedAtMs > firstMs - 60_000 && usedAtMs <= Date.now());
    assert.deepEqual([uses.get(idOf(unused)), uses.get(idOf(expired))], [undefined, undefined]);
  });

  it('is written in one batch per interval, and again after a write that failed', async (t) => {
    const database = await testDatabase(t);
    const app = await startApp(t, { open: () => database.open() });
    const grants: Grant[] = [];
    for (const user of ['alice', 'bob']) {
      const grant = await identify(app.storage, await app.token(user));
      assert.ok(grant);
      grants.push(grant);
    }
    const batches: number[] = [];
    let isFailing = true;
    const storage = override(app.storage, {
      identity: {
        async recordUses(uses) {
          batches.push(uses.length);
          if (isFailing) throw new Error('the storage is unavailable');
          await app.storage.identity.recordUses(uses);
        },
      },
    });
    const uses = new TokenUses(storage.identity, 20);
    t.after(() => uses.close());
    for (const usedAtMs of [1, 60_001]) for (const grant of grants) uses.note(grant, usedAtMs);
    await until('a batch fails', () => batches.length > 0);
    for (const grant of grants.slice(1)) uses.note(grant, 120_001);
    isFailing = false;
    const recorded = async () => {
      const tokens = await app.storage.identity.listTokens({ limit: 10 });
      const usedAtMs = new Map(tokens.map(({ id, lastUsedAtMs }) => [id, lastUsedAtMs]));
      return grants.map(({ tokenId }) => usedAtMs.get(tokenId));
    };
    await until('a batch is written', async () => (await recorded())[1] !== undefined);
    assert.deepEqual(await recorded(), [60_000, 120_000]);
    const written = batches.length;
    await uses.close();
    assert.equal(batches.length, written, 'nothing is written without a use');
    assert.deepEqual(new Set(batches), new Set([2]));
  });
});
