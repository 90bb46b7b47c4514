/**
 * Tokens of an identity provider beside our own: which are accepted, and which are refused.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import type { OidcOptions } from '../../src/oidc/options.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { limitedTo, startApp } from '../support/app.ts';
import { audience, makeKey, startProvider } from '../support/provider.ts';
import { findUser } from '../support/scene.ts';
import { itOnce as it } from '../support/storages.ts';
import { idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';
import { makeOtherKeys, wrongTokens } from './wrong-tokens.ts';

async function start(t: TestContext, options: Partial<OidcOptions> = {}) {
  const provider = await startProvider(t);
  const app = await startApp(t, { verifier: new Verifier(provider.options(options)) });
  /** The status of GET /plants. */
  const status = async (token: string) => (await app.call('GET', '/plants', { token })).status;
  return { ...app, provider, status };
}

describe('a token of the provider', () => {
  it('is accepted beside our own tokens, and its user is created', async (t) => {
    const { call, token, provider, storage } = await start(t);
    const robot = await provider.requestToken('plants:read plants:write');
    const { status, json } = await call('GET', '/token', { token: robot });
    assert.equal(status, 200);
    const { exp = 0 } = JSON.parse(Buffer.from(robot.split('.')[1] ?? '', 'base64url').toString());
    const { id, ...rest } = json as { id: string }; // the service has sent it
    assert.match(id, /^[0-9a-f]{16}$/);
    assert.deepEqual(rest, {
      user: 'robot',
      store: 'main',
      role: 'member',
      scopes: ['plants:read', 'plants:write'],
      expiresAt: new Date(exp * 1_000).toISOString(),
    });
    assert.equal((await findUser(storage, 'main', 'robot')).role, 'member');
    const alice = await token('alice');
    await call('POST', '/plants', { token: robot, json: { name: 'of the robot' } });
    await call('POST', '/plants', { token: alice, json: { name: 'of alice' } });
    const listOf = async (one: string) => (await call('GET', '/plants', { token: one })).text;
    assert.equal(await listOf(robot), '[{"name":"of the robot","tag":""}]');
    assert.equal(await listOf(alice), '[{"name":"of alice","tag":""}]');
  });

  it('belongs to the same user as our tokens for that name, with the same role, plants and shares', async (t) => {
    const { call, token, provider } = await start(t);
    const owner = await token('owner', { scopes });
    await call('POST', '/plants', { token: owner, json: { name: 'shared' } });
    // From before the first sign-on.
    const shared = await call('PUT', '/shares/alice', { token: owner, json: { access: 'read' } });
    assert.equal(shared.status, 201);
    const theirs = await provider.sign();
    const list = async () => (await call('GET', '/plants', { token: theirs })).text;
    assert.equal(await list(), '[{"name":"shared","tag":""}]');
    const ours = await token('alice');
    await call('POST', '/plants', { token: ours, json: { name: 'hers' } });
    assert.equal((await call('DELETE', '/shares/owner', { token: theirs })).status, 204);
    assert.equal(await list(), '[{"name":"hers","tag":""}]');
    const expectRole = async (role: string) =>
      assert.partialDeepStrictEqual((await call('GET', '/token', { token: theirs })).json, {
        role,
      });
    await expectRole('member');
    await token('alice', { role: 'manager' });
    await expectRole('manager');
  });

  it('has one limit with all others of its user, apart from our own tokens', async (t) => {
    const provider = await startProvider(t);
    const verifier = new Verifier(provider.options({}));
    const limits = limitedTo({ requests: 2, windowSeconds: 3_600 });
    const { call, token } = await startApp(t, { verifier, limits });
    const status = async (one: string) => (await call('GET', '/plants', { token: one })).status;
    const statuses = [];
    for (let sent = 0; sent < 3; sent++) statuses.push(await status(await provider.sign()));
    assert.deepEqual(statuses, [200, 200, 429]);
    assert.equal(await status(await provider.sign({ sub: 'bob' })), 200);
    assert.equal(await status(await token('alice')), 200);
  });

  it('without a scope of the service shows what it grants, and allows nothing else', async (t) => {
    const { call, token, provider } = await start(t);
    const ours = idOf(await token('alice'));
    const scopeless = await provider.sign({ scope: 'openid' });
    const shown = await call('GET', '/token', { token: scopeless });
    assert.partialDeepStrictEqual(shown.json, { user: 'alice', scopes: [] });
    const list = await call('GET', '/tokens', { token: scopeless });
    assert.partialDeepStrictEqual(list.json, [{ id: ours }]);
    for (const [method, path, kind] of [
      ['GET', '/plants', 'insufficient-scope'],
      ['GET', '/shares', 'insufficient-scope'],
      ['DELETE', `/tokens/${ours}`, 'insufficient-scope'],
      ['DELETE', '/token', 'token-restricted'],
      ['POST', '/tokens', 'token-restricted'],
    ] as const) {
      const { status, headers, json } = await call(method, path, { token: scopeless });
      assert.equal(status, 403, `${method} ${path}`);
      assert.partialDeepStrictEqual(json, { type: `/problems/${kind}` });
      const challenge = headers.get('www-authenticate') ?? '';
      assert.equal(/scope="plants:read/.test(challenge), kind === 'insufficient-scope');
    }
    assert.partialDeepStrictEqual((await call('GET', '/tokens', { token: scopeless })).json, [
      { id: ours, state: 'active' },
    ]);
  });

  it('creates one user, even if its first requests come together', async (t) => {
    const { call, provider, database } = await start(t, { storeClaim: 'nursery' });
    const other = await database.open();
    t.after(() => other[Symbol.asyncDispose]());
    const again = await startApp(t, {
      open: () => database.open(),
      verifier: new Verifier(provider.options({ storeClaim: 'nursery' })),
    });
    const tokens = await Promise.all(
      Array.from({ length: 8 }, () => provider.sign({ sub: 'new', nursery: 'north' })),
    );
    const answers = await Promise.all(
      tokens.flatMap((one, at) => {
        const json = { name: `plant ${at}` };
        return [call, again.call].map((send) => send('POST', '/plants', { token: one, json }));
      }),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
    const { json } = await call('GET', '/plants', { token: tokens[0] ?? '' });
    assert.equal((json as unknown[]).length, 16, 'all plants have the same owner');
  });

  it('is accepted with each algorithm, from a clock that is a little ahead, with its type in any case', async (t) => {
    const { provider, status } = await start(t);
    const soon = Math.floor(Date.now() / 1_000) + 20;
    assert.equal(await status(await provider.sign({ iat: soon, nbf: soon })), 200);
    for (const typ of ['AT+JWT', 'application/at+jwt', 'Application/AT+jwt']) {
      assert.equal(await status(await provider.sign({}, { typ })), 200, typ);
    }
    const aud = ['https://other.example', audience];
    assert.equal(await status(await provider.sign({ aud })), 200);
    const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'];
    const keys = await Promise.all(algorithms.map((alg) => makeKey(`for ${alg}`, alg)));
    provider.publish(keys);
    for (const key of keys) {
      assert.equal(await status(await provider.sign({}, {}, key)), 200, key.alg);
    }
  });

  it('is refused if anything is wrong with it, with a challenge', async (t) => {
    const { call, status, provider } = await start(t);
    const { ec, encryption, signature } = await makeOtherKeys();
    const [first] = provider.keys;
    if (first === undefined) throw new Error('no key');
    provider.publish([first, ec, encryption, signature]);
    provider.keys = [first, ec as typeof first];
    assert.equal(await status(await provider.sign()), 200);
    assert.equal(await status(await provider.sign({}, {}, provider.keys[1])), 200);
    const wrong = Object.entries(await wrongTokens(provider));
    assert.ok(wrong.length >= 40, `${wrong.length}`);
    await Promise.all(
      wrong.map(async ([what, token]) => {
        const { headers, json, text } = await call('GET', '/plants', { token });
        const { status: refusal, type, detail } = json as Record<string, unknown>;
        assert.deepEqual([what, refusal, type], [what, 401, '/problems/invalid-token']);
        assert.equal(headers.get('www-authenticate'), 'Bearer error="invalid_token"', what);
        assert.equal(typeof detail, 'string', what);
        assert.ok(!text.includes(token.slice(0, 40)), 'no token is echoed');
      }),
    );
    assert.deepEqual(
      provider.requests.filter((path) => path.includes('evil')),
      [],
    );
    assert.equal(await status(await provider.sign()), 200);
  });

  it('is refused from its expiry on, although it is cached', async (t) => {
    const { status, provider } = await start(t);
    const exp = Math.ceil(Date.now() / 1_000) + 2;
    const token = await provider.sign({ exp });
    for (let at = 0; at < 3; at++) assert.equal(await status(token), 200);
    let acceptedMs = 0;
    await until('it is refused', async () => {
      const sentMs = Date.now();
      if ((await status(token)) === 401) return true;
      acceptedMs = sentMs;
      return false;
    });
    assert.ok(acceptedMs < exp * 1_000, 'it is refused in time');
    assert.ok(Date.now() >= exp * 1_000, 'and not before');
    assert.equal(await status(token), 401);
  });
});

describe('a removed user', () => {
  it('is refused with tokens from before, and is a new member with a later one', async (t) => {
    const { call, status, token, provider, storage, database } = await start(t);
    await token('alice', { role: 'manager' });
    const iat = Math.floor(Date.now() / 1_000) - 120;
    const before = await provider.sign({ iat });
    const unused = await provider.sign({ iat });
    assert.equal(await status(before), 200);
    const other = await database.open();
    t.after(() => other[Symbol.asyncDispose]());
    const alice = await findUser(other, 'main', 'alice');
    const removedAtMs = Date.now() - 60_000;
    await other.users.endAccess(alice, removedAtMs, 100);
    assert.equal(await other.users.remove(alice, removedAtMs), true);
    // From before the removal, by a clock that is 20 s ahead.
    const ahead = await provider.sign({ iat: Math.floor(removedAtMs / 1_000) + 20 });
    const assertRefused = async () => {
      for (const one of [before, unused, ahead]) {
        const { status: refusal, text } = await call('GET', '/plants', { token: one });
        assert.deepEqual([refusal, /The token is revoked/.test(text)], [401, true]);
      }
    };
    await assertRefused();
    assert.equal((await findUser(storage, 'main', 'alice')).role, undefined);
    const { json } = await call('GET', '/token', { token: await provider.sign() });
    assert.partialDeepStrictEqual(json, { user: 'alice', role: 'member' });
    assert.equal((await findUser(storage, 'main', 'alice')).role, 'member');
    await assertRefused(); // also now that somebody has the name
  });
});

describe('times of a token', () => {
  it('can have fractions, also for a user who returns', async (t) => {
    const { call, provider, storage } = await start(t);
    const now = Math.floor(Date.now() / 1_000);
    const whole = await provider.sign({ iat: now - 120 });
    assert.equal((await call('GET', '/token', { token: whole })).status, 200);
    const alice = await findUser(storage, 'main', 'alice');
    assert.ok(await storage.users.remove(alice, Date.now() - 60_000));
    const iat = now - 0.123456789;
    const { status, text, json } = await call('GET', '/token', {
      token: await provider.sign({ iat, exp: now + 60.7509 }),
    });
    assert.equal(status, 200, text);
    assert.partialDeepStrictEqual(json, {
      user: 'alice',
      expiresAt: new Date(now * 1_000 + 60_750).toISOString(),
    });
  });
});

describe('the tokens of a user who signs on', () => {
  it('are listed and revoked with a token of the provider, which creates and revokes none', async (t) => {
    const { call, status, token, provider } = await start(t);
    const ours = await token('alice');
    const theirs = await provider.sign();
    const { json } = await call('GET', '/tokens', { token: theirs });
    const [listed] = json as { id: string }[]; // the service has sent it
    for (const [method, path] of [
      ['POST', '/tokens'],
      ['DELETE', '/token'],
    ] as const) {
      const { status: refusal, headers, text } = await call(method, path, { token: theirs });
      assert.deepEqual([refusal, headers.get('www-authenticate')], [403, null]);
      assert.match(text, /from your identity provider/);
    }
    assert.equal(await status(theirs), 200);
    assert.equal((await call('DELETE', `/tokens/${listed?.id}`, { token: theirs })).status, 204);
    assert.equal(await status(ours), 401);
  });
});

describe('a token in a wrong place', () => {
  it('is not echoed, and a service without a provider refuses it', async (t) => {
    const { call, provider } = await start(t);
    const token = await provider.sign();
    const without = await startApp(t);
    const refused = await without.call('GET', '/plants', { token });
    assert.equal(refused.status, 401);
    assert.match(refused.text, /This is not a Plant Store token/);
    const answers = [
      await call('GET', `/plants?${token}`, { token }),
      await call('POST', '/plants', { token, json: { name: 'a', [token]: 1 } }),
    ];
    for (const { status, text } of answers) {
      assert.equal(status, 400);
      assert.match(text, /eyJ\.\.\./);
      assert.ok(!text.includes(token.slice(-40)));
    }
  });
});

describe('a token of the type JWT', () => {
  it('is accepted if the operator wants it, unless it is an ID token', async (t) => {
    const { call, status, provider } = await start(t, { tokenType: 'jwt' });
    const jwt = { typ: 'JWT' };
    const bare = { client_id: undefined, jti: undefined, azp: 'app' };
    assert.equal(await status(await provider.sign(bare, jwt)), 200);
    assert.equal(await status(await provider.sign(bare, { typ: undefined })), 200);
    assert.equal(await status(await provider.sign()), 200);
    const idTokens = [
      { nonce: 'n' },
      { at_hash: 'h' },
      { c_hash: 'h' },
      { aud: [audience, 'app'], azp: 'app' },
      { azp: audience },
      { client_id: audience },
    ];
    for (const claims of idTokens) {
      const { status: refusal, text } = await call('GET', '/plants', {
        token: await provider.sign({ ...bare, ...claims }, jwt),
      });
      assert.deepEqual([refusal, /ID token/.test(text)], [401, true], JSON.stringify(claims));
    }
    assert.equal(await status(await provider.sign(bare, { typ: 'dpop+jwt' })), 401);
    assert.equal(await status(await provider.sign({ ...bare, sub: undefined }, jwt)), 401);
  });
});
