import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { describe } from 'node:test';
import type { Grant } from '../../src/access/access.ts';
import { TokenUses } from '../../src/http/auth/token-uses.ts';
import { isToken, makeToken, storeOf, tokenId } from '../../src/access/token.ts';
import { inNewStore, override, startApp, type Send } from '../support/app.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';
import { identify, idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';

interface ShownToken {
  id: string;
  token?: string;
  state: string;
  [field: string]: unknown;
}

/** Identified tokens. */
const identified = new Set<string>();
const app = await startApp(fileScope(), {
  baseUrl: 'https://plants.example/api',
  wrap: (storage) =>
    override(storage, {
      identity: {
        identify: async (credential) =>
          storage.identity.identify(credential).finally(() => {
            identified.add(tokenId(credential.tokenHash, credential.store));
          }),
      },
    }),
});

/** Creates a token with another one. */
async function created(send: Send, json?: object): Promise<ShownToken> {
  const answer = await send('POST', '/tokens', { ...(json && { json }) });
  assert.equal(answer.status, 201, answer.text);
  return answer.json as ShownToken; // as the next test checks
}

async function listed(send: Send): Promise<ShownToken[]> {
  const { status, json } = await send('GET', '/tokens');
  assert.equal(status, 200);
  return json as ShownToken[]; // as the tests below check
}

/** The id of the token, or the problem of the response if it is refused. */
async function shownBy(token: string): Promise<unknown> {
  const { status, json } = await app.call('GET', '/token', { token });
  return status === 200 ? (json as ShownToken).id : (json as { detail: string }).detail;
}

it('GET /token shows who is calling, with which rights, and until when', async () => {
  const { token, store } = inNewStore(app);
  const expiresAt = '2100-01-31T12:00:00.000Z';
  const limited = { scopes: ['plants:read'], expiresAtMs: Date.parse(expiresAt) } as const;
  const alice = await token('alice', { ...limited, role: 'manager' });
  const { status, headers, json } = await app.call('GET', '/token', { token: alice });
  assert.equal(status, 200);
  assert.equal(headers.get('content-type'), 'application/json');
  assert.equal(headers.get('cache-control'), 'no-store');
  const scopes = ['plants:read'];
  assert.deepEqual(json, {
    id: idOf(alice),
    user: 'alice',
    store,
    role: 'manager',
    scopes,
    expiresAt,
  });
  const bob = await token('bob', { scopes: ['plants:write'] });
  const rest = { user: 'bob', store, role: 'member', scopes: ['plants:write'] };
  const lasting = await app.call('GET', '/token', { token: bob });
  assert.deepEqual(lasting.json, { id: idOf(bob), ...rest }, 'no scope is needed');
  const bare = await app.call('GET', '/token');
  assert.deepEqual([bare.status, bare.headers.get('www-authenticate')], [401, 'Bearer']);
});

describe('POST /tokens', () => {
  it('creates a twin of the token without a body, and shows it once', async () => {
    const { user, store } = inNewStore(app);
    const expiresAt = '2100-01-31T12:00:00.000Z';
    const scopes = ['plants:read', 'plants:write'] as const;
    const alice = await user('alice', {
      role: 'manager',
      scopes: scopes.toReversed(),
      expiresAtMs: Date.parse(expiresAt),
    });
    const headers = { 'content-type': 'application/json' };
    for (const options of [{}, { headers }, { json: {} }]) {
      const before = Date.now();
      const answer = await alice('POST', '/tokens', options);
      assert.equal(answer.status, 201);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      const { token = '', createdAt, ...rest } = answer.json as ShownToken; // checked here
      assert.ok(isToken(token));
      assert.ok(Date.parse(String(createdAt)) >= before);
      const id = idOf(token);
      assert.equal(answer.headers.get('location'), `https://plants.example/api/tokens/${id}`);
      assert.deepEqual(rest, { id, label: '', scopes, state: 'active', current: false, expiresAt });
      const { json } = await app.call('GET', '/token', { token });
      assert.deepEqual(json, { id, user: 'alice', store, role: 'manager', scopes, expiresAt });
    }
    assert.ok(!(await alice('GET', '/tokens')).text.includes('plant_'));
  });

  it('creates a token with fewer scopes, an earlier expiry and a label', async () => {
    const alice = await inNewStore(app).user('alice');
    const json = { scopes: ['plants:read'], expiresAt: '2100-02-28t13:30:00.5+01:30', label: 'a' };
    const { token = '', ...shown } = await created(alice, json);
    assert.partialDeepStrictEqual(shown, { ...json, expiresAt: '2100-02-28T12:00:00.500Z' });
    const child = app.as(token);
    assert.equal((await child('POST', '/plants', { json: { name: 'a' } })).status, 403);
    const { expiresAt } = await created(child, { expiresAt: '2100-02-28T12:00:00.499Z' });
    assert.equal(expiresAt, '2100-02-28T12:00:00.499Z');
  });

  it('refuses more scopes than the token has, and names them', async () => {
    const alice = await inNewStore(app).user('alice', { scopes: ['plants:read'] });
    const json = { scopes: ['plants:read', 'shares:write', 'plants:write'] };
    const { status, headers, text } = await alice('POST', '/tokens', { json });
    assert.equal(status, 403);
    const challenge = 'Bearer error="insufficient_scope", scope="shares:write plants:write"';
    assert.equal(headers.get('www-authenticate'), challenge);
    assert.match(text, /so a new token cannot have shares:write plants:write\./);
    assert.equal((await listed(alice)).length, 1);
  });

  it('refuses an expiry that is past, or later than that of the token', async () => {
    const expiresAtMs = Date.now() + 60_000;
    const alice = await inNewStore(app).user('alice', { expiresAtMs });
    for (const [timeMs, reason] of [
      [Date.now(), /is in the past/],
      [expiresAtMs + 1, /is too late\. Send 20\d\d-/],
    ] as const) {
      const json = { expiresAt: new Date(timeMs).toISOString() };
      const refused = await alice('POST', '/tokens', { json });
      assert.equal(refused.status, 400);
      assert.partialDeepStrictEqual(refused.json, { errors: [{ pointer: '/expiresAt' }] });
      assert.match(refused.text, reason);
    }
    await created(alice, { expiresAt: new Date(expiresAtMs).toISOString() });
    assert.equal((await listed(alice)).length, 2);
  });

  it('refuses invalid bodies, and creates nothing', async () => {
    const alice = await inNewStore(app).user('alice');
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
      const { status, json: problem } = await alice('POST', '/tokens', { json });
      assert.equal(status, 400, JSON.stringify(json));
      assert.partialDeepStrictEqual(problem, { errors: [{ pointer }] });
    }
    assert.equal((await alice('POST', '/tokens', { body: '{}' })).status, 415);
    const headers = { 'content-type': 'application/json' };
    const malformed = await alice('POST', '/tokens', { body: '{', headers });
    assert.equal(malformed.status, 400);
    assert.match(
      malformed.text,
      /an object like {\\"scopes\\":\[\\"plants:read\\"\],\\"label\\":\\"phone\\"}\./,
    );
    assert.equal((await alice('POST', '/tokens?user=bob')).status, 400);
    assert.equal((await app.call('POST', '/tokens')).status, 401);
    assert.equal((await listed(alice)).length, 1);
  });

  it('refuses a token that expires before the body arrives', async () => {
    const { token } = inNewStore(app);
    const expiresAtMs = Date.now() + 1_000;
    const refused = ['{}', '{"expiresAt":"2100-01-01T00:00:00Z"}'].map(async (body) => {
      const alice = await token('alice', { expiresAtMs });
      const headers = { authorization: `Bearer ${alice}`, 'content-type': 'application/json' };
      const sent = request(`${app.address}/tokens`, { method: 'POST', headers });
      const responded = once(sent, 'response');
      sent.write(' ');
      await until('it is identified', () => identified.has(idOf(alice)));
      await until('the token has expired', () => Date.now() >= expiresAtMs);
      sent.end(body);
      const [response] = await responded;
      assert.equal(response.statusCode, 401, await textOf(response));
      return idOf(alice);
    });
    const ids = await Promise.all(refused);
    const alice = app.as(await token('alice'));
    const left = (await listed(alice)).filter(({ current }) => current !== true);
    assert.deepEqual(left.map(({ id }) => id).toSorted(), ids.toSorted());
  });
});

it("GET /tokens lists the user's own tokens in every state", async () => {
  const { token, user } = inNewStore(app);
  await token('bob');
  await inNewStore(app).token('alice');
  const alice = await user('alice', { scopes: ['plants:read'] });
  const phone = await created(alice, { label: 'phone' });
  const expired = await token('alice', { expiresAtMs: Date.now() });
  await alice('DELETE', `/tokens/${phone.id}`);
  const tokens = await listed(alice);
  const byId = new Map(tokens.map((one) => [one.id, one]));
  assert.equal(byId.size, 3);
  const { id, createdAt: _, ...own } = tokens.find(({ current }) => current) ?? assert.fail();
  const scopes = ['plants:read'];
  assert.deepEqual(own, { label: '', scopes, state: 'active', current: true });
  assert.ok(id !== phone.id);
  const revoked = byId.get(phone.id);
  assert.partialDeepStrictEqual(revoked, { label: 'phone', state: 'revoked', current: false });
  assert.ok(Date.parse(String(revoked?.['revokedAt'])) <= Date.now());
  assert.equal(byId.get(idOf(expired))?.state, 'expired');
  assert.deepEqual(await listed(alice), tokens);
});

describe('DELETE /token and DELETE /tokens/{id}', () => {
  const isRevoked = /^The token is revoked/;

  it('revoke the token that asks, or one by its id, and the response is the same again', async () => {
    const { user, token } = inNewStore(app);
    const [asking, second, own] = [
      await token('alice'),
      await token('alice'),
      await token('alice'),
    ];
    for (const round of [204, 401]) {
      const { status, text } = await app.call('DELETE', '/token', { token: asking });
      assert.equal(status, round);
      if (status === 204) assert.equal(text, '');
      assert.match(String(await shownBy(asking)), isRevoked);
    }
    const alice = await user('alice');
    const child = await created(alice);
    assert.equal(await shownBy(child.token ?? ''), child.id);
    for (let round = 0; round < 2; round++) {
      const { status, text } = await alice('DELETE', `/tokens/${child.id}`);
      assert.deepEqual([status, text], [204, '']);
      assert.match(String(await shownBy(child.token ?? '')), isRevoked);
    }
    const { status } = await app.call('DELETE', `/tokens/${idOf(own)}`, { token: own });
    assert.equal(status, 204);
    assert.match(String(await shownBy(own)), isRevoked);
    assert.equal(await shownBy(second), idOf(second));
  });

  it('refuse a token that grants more, or that the asking one was created with', async () => {
    const { user, token } = inNewStore(app);
    const parent = await token('alice');
    const alice = app.as(parent);
    const { token: child = '' } = await created(alice);
    const reading = await user('alice', { scopes: ['plants:read'] });
    const lacking = 'Bearer error="insufficient_scope", scope="plants:write"';
    for (const [send, kind, challenge] of [
      [reading, 'insufficient-scope', lacking],
      [app.as(child), 'token-restricted', null],
    ] as const) {
      const refused = await send('DELETE', `/tokens/${idOf(parent)}`);
      assert.deepEqual([refused.status, refused.headers.get('www-authenticate')], [403, challenge]);
      assert.partialDeepStrictEqual(refused.json, { type: `/api/problems/${kind}` });
    }
    const states = (await listed(alice)).map(({ state }) => state);
    assert.deepEqual(states, ['active', 'active', 'active']);
  });

  it('respond alike to the id of another user, an unknown one, and text that is no id', async () => {
    const { token } = inNewStore(app);
    const [alice, bob] = [await token('alice'), await token('bob')];
    const namesake = await inNewStore(app).token('alice');
    const ids = [idOf(bob), idOf(namesake), idOf(makeToken(1)), 'x', '%00', idOf(alice).slice(1)];
    ids.push(idOf(alice).toUpperCase().replace(/^\d+$/, 'A'), 'a'.repeat(4_000));
    const texts = new Set<string>();
    for (const id of ids) {
      const { status, text } = await app.call('DELETE', `/tokens/${id}`, { token: alice });
      assert.equal(status, 404, id);
      texts.add(text);
    }
    assert.equal(texts.size, 1);
    for (const one of [alice, bob, namesake]) assert.equal(await shownBy(one), idOf(one));
  });
});

describe('the last use of a token', () => {
  it('is shown to the minute as soon as the service is stopping', async (t) => {
    const stop = new AbortController();
    const { token: add, call, storage } = await startApp(t, { stopping: stop.signal });
    const [alice, unused] = [await add('alice'), await add('alice')];
    const store = storeOf(alice);
    const expired = await add('alice', { expiresAtMs: Date.now() });
    const firstMs = Date.now();
    for (const token of [alice, alice, expired]) await call('GET', '/plants', { token });
    const lastUses = async () => {
      const tokens = await storage.identity.listTokens({ store, limit: 10 });
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

  it('is written in one batch per minute of use, and again after a write that failed', async (t) => {
    const { token, storage } = inNewStore(app);
    const grants: Grant[] = [];
    for (const user of ['alice', 'bob']) {
      grants.push((await identify(storage, await token(user))) ?? assert.fail());
    }
    const batches: [usedAtMs: number, tokens: number][] = [];
    let isFailing = true;
    const { identity } = override(storage, {
      identity: {
        async recordUses(number, usedAtMs, hashes) {
          batches.push([usedAtMs, hashes.length]);
          if (isFailing) throw new Error('the storage is unavailable');
          await storage.identity.recordUses(number, usedAtMs, hashes);
        },
      },
    });
    const uses = new TokenUses(identity, 20);
    t.after(() => uses.close());
    for (const usedAtMs of [1, 60_001]) for (const grant of grants) uses.note(grant, usedAtMs);
    await until('a batch fails', () => batches.length > 0);
    for (const grant of grants.slice(1)) uses.note(grant, 120_001);
    isFailing = false;
    const recorded = async () => {
      const { store = 0 } = grants[0]?.caller ?? {};
      const tokens = await storage.identity.listTokens({ store, limit: 10 });
      const usedAtMs = new Map(tokens.map(({ id, lastUsedAtMs }) => [id, lastUsedAtMs]));
      return grants.map((grant) => usedAtMs.get(grant.tokenId));
    };
    await until('all are written', async () => !(await recorded()).includes(undefined));
    assert.deepEqual(await recorded(), [60_000, 120_000]);
    const written = batches.length;
    await uses.close();
    assert.equal(batches.length, written, 'nothing is written without a use');
    const expected = ['60000,2', '60000,1', '120000,1'];
    assert.deepEqual(new Set(batches.map(String)), new Set(expected));
  });
});
