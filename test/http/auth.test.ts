import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { storageUnavailable } from '../../src/problem.ts';
import { openArchive } from '../../src/cli/database.ts';
import { credentialOf, makeToken } from '../../src/access/token.ts';
import { override, startApp } from '../support/app.ts';
import { itOnce as it } from '../support/storages.ts';
import { exchange, request } from '../support/raw.ts';
import { idOf, restoreToken } from '../support/tokens.ts';
import { until } from '../support/until.ts';

const operations = [
  ['POST', '/plants', 'plants:write'],
  ['GET', '/plants', 'plants:read'],
  ['GET', '/plants/1', 'plants:read'],
  ['HEAD', '/plants', 'plants:read'],
  ['DELETE', '/plants/1', 'plants:write'],
] as const;

describe('authentication', () => {
  it('returns 401 with a bare challenge if no token is sent', async (t) => {
    const { call } = await startApp(t);
    for (const [method, path] of operations) {
      const { status, headers, text } = await call(method, path);
      assert.deepEqual([status, headers.get('www-authenticate')], [401, 'Bearer'], method);
      if (method !== 'HEAD') assert.match(text, /ask whoever runs this service/);
    }
  });

  it('returns 401 with invalid_token for every invalid token', async (t) => {
    const { call, token, storage } = await startApp(t);
    const expired = await token('alice', { expiresAtMs: Date.now() - 1 });
    const revoked = await token('alice');
    await storage.identity.revokeToken(idOf(revoked), Date.now());
    const good = await token('alice');
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
    for (const authorization of bad) {
      const { status, headers, text } = await call('GET', '/plants', {
        headers: { authorization },
      });
      const challenge = headers.get('www-authenticate');
      assert.deepEqual([status, challenge], [401, 'Bearer error="invalid_token"'], authorization);
      assert.ok(!text.includes('plant_'), 'no token is echoed');
    }
    assert.equal((await call('GET', '/plants', { token: good })).status, 200);
  });

  it('accepts the scheme in upper and lower case', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    for (const scheme of ['bearer', 'BEARER', 'bEaReR']) {
      const headers = { authorization: `${scheme} ${alice}` };
      assert.equal((await call('GET', '/plants', { headers })).status, 200);
    }
  });

  it('does not echo a token from a wrong place', async (t) => {
    const { token, call } = await startApp(t);
    const alice = await token('alice');
    const answers = [
      await call('GET', `/plants?${alice}`, { token: alice }),
      await call('GET', `/plants?limit=1&${alice}=1&${alice}=2`, { token: alice }),
      await call('POST', '/plants', { token: alice, json: { name: 'a', [alice]: 1 } }),
    ];
    for (const { status, text } of answers) {
      assert.equal(status, 400);
      assert.match(text, /plant_\.\.\./);
      assert.doesNotMatch(text, new RegExp(alice.slice(10, 30)));
    }
  });

  it('never reads a token from the URL', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    assert.equal((await call('GET', `/plants?access_token=${alice}`)).status, 401);
    assert.equal((await call('GET', `/plants?token=${alice}`, { token: alice })).status, 400);
  });

  it('refuses two Authorization headers, even with the same token', async (t) => {
    const { port, token } = await startApp(t);
    const header = `Authorization: Bearer ${await token('alice')}`;
    const answer = await exchange(port, request('GET /plants', ['Host: x', header, header]));
    assert.match(answer, /^HTTP\/1\.1 401 /);
  });

  it('does not read the query of a request whose token needs no lookup', async (t) => {
    const limits: unknown[] = [];
    const { call, token } = await startApp(t, {
      addRoutes: (app) =>
        app.addHook('onSend', async ({ query }) => {
          limits.push((query as { limit: unknown }).limit); // the test sends it
        }),
    });
    const list = (options = {}) => call('GET', '/plants?limit=5', options);
    await list();
    await list({ token: 'plant_x' });
    await list({ token: await token('alice') });
    assert.deepEqual(limits, [undefined, undefined, 5]);
  });

  it('checks the token before the body', async (t) => {
    const { call } = await startApp(t);
    const { status } = await call('POST', '/plants', { body: 'x'.repeat(100_000) });
    assert.equal(status, 401);
  });
});

describe('authorization', () => {
  it('returns 403 with the scope that the token lacks', async (t) => {
    const { call, token } = await startApp(t);
    const readOnly = await token('alice', { scopes: ['plants:read'] });
    const writeOnly = await token('alice', { scopes: ['plants:write'] });
    for (const [method, path, scope] of operations) {
      const lacking = scope === 'plants:read' ? writeOnly : readOnly;
      const { status, headers } = await call(method, path, { token: lacking });
      const challenge = `Bearer error="insufficient_scope", scope="${scope}"`;
      assert.deepEqual([status, headers.get('www-authenticate')], [403, challenge]);
    }
    const json = { name: 'a' };
    assert.equal((await call('POST', '/plants', { token: readOnly, json })).status, 403);
    assert.equal((await call('GET', '/plants', { token: readOnly })).text, '[]');
    assert.equal((await call('POST', '/plants', { token: writeOnly, json })).status, 201);
    assert.equal(
      (await call('GET', '/plants', { token: readOnly })).text,
      '[{"name":"a","tag":""}]',
    );
  });
});

describe('an unknown token', () => {
  it('is looked up with few others at a time, and delays no known one', async (t) => {
    const [maxLookups, unknown] = [4, 20];
    let lookups = 0;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const known = new Set<string>();
    const { call, token } = await startApp(t, {
      wrap: (storage) =>
        override(storage, {
          identity: {
            maxLookups,
            identify: async (credential) => {
              if (!known.has(credential.tokenHash.toString())) {
                lookups++;
                await released;
              }
              return storage.identity.identify(credential);
            },
          },
        }),
    });
    const alice = await token('alice');
    known.add(credentialOf(alice).tokenHash.toString());
    const ask = async (used: string) => (await call('GET', '/plants', { token: used })).status;
    assert.equal(await ask(alice), 200);
    const strangers = Array.from({ length: unknown }, () => ask(makeToken(1)));
    await until('some are looked up', () => lookups > 0);
    for (let at = 0; at < 10; at++) assert.equal(await ask(alice), 200);
    assert.equal(lookups, maxLookups / 2, 'a client has half of them');
    release();
    for (const status of await Promise.all(strangers)) assert.ok([401, 503].includes(status)); // 503 after a second
  });

  it('is accepted as soon as a restore adds it', async (t) => {
    const { call, storage, database, ...app } = await startApp(t);
    await app.token('alice');
    const alice = await storage.users.find('main', 'alice');
    assert.ok(alice);
    const token = makeToken(alice.store);
    const status = async () => (await call('GET', '/plants', { token })).status;
    assert.equal(await status(), 401);
    await using archive = await openArchive(database.url, { create: false });
    await restoreToken(archive, alice, token);
    assert.equal(await status(), 200);
  });

  it('does not delay a new token, even if many requests have unknown tokens', async (t) => {
    const { call, token } = await startApp(t);
    for (let round = 0; round < 5; round++) {
      const unknown = Array.from({ length: 50 }, () =>
        call('GET', '/plants', { token: makeToken(1) }),
      );
      assert.equal((await call('GET', '/plants', { token: await token('alice') })).status, 200);
      for (const { status } of await Promise.all(unknown)) assert.equal(status, 401);
    }
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
