import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { storageUnavailable } from '../../src/problem.ts';
import { makeToken } from '../../src/access/token.ts';
import { inNewStore, override, startApp } from '../support/app.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';
import { exchange, request } from '../support/raw.ts';
import { findUser } from '../support/scene.ts';
import { idOf, restoreTokens } from '../support/tokens.ts';

const operations = [
  ['POST', '/plants', 'plants:write'],
  ['GET', '/plants', 'plants:read'],
  ['GET', '/plants/1', 'plants:read'],
  ['HEAD', '/plants', 'plants:read'],
  ['DELETE', '/plants/1', 'plants:write'],
] as const;

const app = await startApp(fileScope());

describe('authentication', () => {
  it('returns 401 with a bare challenge if no token is sent', async () => {
    for (const [method, path] of operations) {
      const { status, headers, text } = await app.call(method, path);
      assert.deepEqual([status, headers.get('www-authenticate')], [401, 'Bearer'], method);
      if (method !== 'HEAD') assert.match(text, /ask whoever runs this service/);
    }
    const body = 'x'.repeat(100_000); // the token is checked before the body
    assert.equal((await app.call('POST', '/plants', { body })).status, 401);
  });

  it('returns 401 with invalid_token for every invalid token', async () => {
    const expired = await app.token('alice', { expiresAtMs: Date.now() - 1 });
    const revoked = await app.token('alice');
    await app.storage.identity.revokeToken(idOf(revoked), Date.now());
    const good = await app.token('alice');
    const bad = [
      `Bearer ${makeToken(1)}`,
      `Bearer ${expired}`,
      `Bearer ${revoked}`,
      `Bearer ${good.slice(0, -1)}`,
      `Bearer ${good}x`,
      `Bearer ${good} ${good}`,
      `Basic ${good}`,
      good,
      'Bearer',
      'Bearer ',
    ];
    // More than a limit would allow, which is off unless it is set.
    for (const authorization of [...bad, ...bad, ...bad]) {
      const answer = await app.call('GET', '/plants', { headers: { authorization } });
      const challenge = answer.headers.get('www-authenticate');
      const expected = [401, 'Bearer error="invalid_token"'];
      assert.deepEqual([answer.status, challenge], expected, authorization);
      assert.ok(!answer.text.includes('plant_'), 'no token is echoed');
    }
    for (const [token, state] of [
      [expired, 'expired'],
      [revoked, 'revoked'],
    ] as const) {
      const { text } = await app.call('GET', '/plants', { token });
      assert.ok(text.includes(`The token is ${state}. Get a new one.`), text);
    }
    const header = `Authorization: Bearer ${good}`;
    const twice = await exchange(app.port, request('GET /plants', ['Host: x', header, header]));
    assert.match(twice, /^HTTP\/1\.1 401 /);
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
      const headers = { authorization: `${scheme} ${good}` };
      assert.equal((await app.call('GET', '/plants', { headers })).status, 200);
    }
  });

  it('neither reads a token from a wrong place nor echoes it', async () => {
    const token = await app.token('alice');
    assert.equal((await app.call('GET', `/plants?access_token=${token}`)).status, 401);
    assert.equal((await app.call('GET', `/plants?token=${token}`, { token })).status, 400);
    const answers = [
      await app.call('GET', `/plants?${token}`, { token }),
      await app.call('GET', `/plants?limit=1&${token}=1&${token}=2`, { token }),
      await app.call('POST', '/plants', { token, json: { name: 'a', [token]: 1 } }),
    ];
    for (const { status, text } of answers) {
      assert.equal(status, 400);
      assert.match(text, /plant_\.\.\./);
      assert.doesNotMatch(text, new RegExp(token.slice(10, 30)));
    }
  });

  it('does not read the query of a request whose token needs no lookup', async (t) => {
    const limits: unknown[] = [];
    const { call, token } = await startApp(t, {
      addRoutes: (instance) =>
        instance.addHook('onSend', async ({ query }) => {
          limits.push((query as { limit: unknown }).limit); // the test sends it
        }),
    });
    const list = (options = {}) => call('GET', '/plants?limit=5', options);
    await list();
    await list({ token: 'plant_x' });
    await list({ token: await token('alice') });
    assert.deepEqual(limits, [undefined, undefined, 5]);
  });
});

it('a request without the scope that it needs gets 403 with the scope', async () => {
  const { token, call } = inNewStore(app);
  const readOnly = await token('alice', { scopes: ['plants:read'] });
  const writeOnly = await token('alice', { scopes: ['plants:write'] });
  for (const [method, path, scope] of operations) {
    const lacking = scope === 'plants:read' ? writeOnly : readOnly;
    const json = method === 'POST' ? { name: 'a' } : undefined;
    const { status, headers } = await call(method, path, { token: lacking, json });
    const challenge = `Bearer error="insufficient_scope", scope="${scope}"`;
    assert.deepEqual([status, headers.get('www-authenticate')], [403, challenge]);
  }
  const list = async () => (await call('GET', '/plants', { token: readOnly })).text;
  assert.equal(await list(), '[]');
  const created = await call('POST', '/plants', { token: writeOnly, json: { name: 'a' } });
  assert.equal(created.status, 201);
  assert.equal(await list(), '[{"name":"a","tag":""}]');
});

describe('an unknown token', () => {
  it('is accepted as soon as a restore adds it', async () => {
    const { call, token: add, store } = inNewStore(app);
    await add('alice');
    const alice = await findUser(app.storage, store, 'alice');
    const token = makeToken(alice.store);
    const status = async () => (await call('GET', '/plants', { token })).status;
    assert.equal(await status(), 401);
    await restoreTokens(app.database.url, alice, [token]);
    assert.equal(await status(), 200);
  });

  it('is looked up again if the lookup failed', async (t) => {
    let isFailing = true;
    const { call, token } = await startApp(t, {
      wrap: (storage) =>
        override(storage, {
          identity: {
            identify: async (credential) => {
              if (isFailing) throw storageUnavailable(new Error('not now'));
              return storage.identity.identify(credential);
            },
          },
        }),
    });
    const alice = await token('alice');
    assert.equal((await call('GET', '/plants', { token: alice })).status, 503);
    isFailing = false;
    assert.equal((await call('GET', '/plants', { token: alice })).status, 200);
  });
});
