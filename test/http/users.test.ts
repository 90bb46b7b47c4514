/**
 * What managers do with the users of their store, and what nobody can do with an invitation.
 */
import assert from 'node:assert/strict';
import { scopes, type Scope } from '../../src/access/access.ts';
import { inNewStore, startApp, type Answer } from '../support/app.ts';
import { fileScope, it as itOnEach, itOnce } from '../support/storages.ts';
import { idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';

const app = await startApp(fileScope());
const kindOf = ({ status, json }: Answer) => [status, (json as { type: string }).type.slice(10)];
const tokenIn = ({ json }: Answer) => (json as { token: string }).token;

/** A store with the manager ann, and a way to call as somebody else. */
async function setUp(of = app, granted: readonly Scope[] = scopes) {
  const { user, token, as, store } = inNewStore(of);
  const ann = await user('ann', { role: 'manager', scopes: granted });
  return { ann, user, token, as, store };
}

itOnEach('a manager lists users, and sets their roles', async (t) => {
  const { ann, user } = await setUp(await startApp(t));
  const bob = await user('bob', { scopes });
  await ann('POST', '/plants', { json: { name: 'Fern' } });
  assert.equal((await bob('GET', '/plants')).text, '[]');
  const { json, headers } = await ann('GET', '/users?limit=1');
  assert.deepEqual(json, [{ user: 'ann', role: 'manager', plants: 1 }]);
  const next = /<(.*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? '';
  assert.deepEqual((await ann('GET', next)).json, [{ user: 'bob', role: 'member', plants: 0 }]);

  const set = await ann('PUT', '/users/bob', { json: { role: 'manager' } });
  assert.deepEqual([set.status, set.json], [200, { user: 'bob', role: 'manager' }]);
  assert.equal((await bob('GET', '/plants')).text, '[{"name":"Fern","tag":""}]');
  assert.equal((await bob('PUT', '/users/ann', { json: { role: 'member' } })).status, 200);
  const last = await bob('PUT', '/users/bob', { json: { role: 'member' } });
  assert.deepEqual(kindOf(last), [409, 'last-manager']);
  assert.deepEqual(kindOf(await ann('GET', '/users')), [403, 'manager-required']);
  const nobody = await bob('PUT', '/users/carol', { json: { role: 'member' } });
  assert.deepEqual(kindOf(nobody), [404, 'user-not-found']);
});

itOnEach('a manager removes a user, whose plants another one gets', async (t) => {
  const { ann, user } = await setUp(await startApp(t));
  const [bob, carol] = [await user('bob', { scopes }), await user('carol')];
  await bob('POST', '/plants', { json: { name: 'Fern' } });
  await bob('PUT', '/shares/carol', { json: { access: 'read' } });
  assert.deepEqual(kindOf(await ann('DELETE', '/users/bob')), [409, 'user-owns-plants']);
  assert.equal((await bob('GET', '/plants')).status, 200);
  for (const heir of ['dave', 'bob']) {
    const { status, json } = await ann('DELETE', `/users/bob?plants-to=${heir}`);
    assert.equal(status, 400, 'not 404, which a repeated request takes for success');
    assert.partialDeepStrictEqual(json, { errors: [{ parameter: 'plants-to' }] });
  }
  assert.equal((await ann('DELETE', '/users/bob?plants-to=carol')).status, 204);
  assert.equal((await bob('GET', '/plants')).status, 401);
  assert.equal((await carol('GET', '/plants')).text, '[{"name":"Fern","tag":""}]');
  assert.deepEqual(kindOf(await ann('DELETE', '/users/bob')), [404, 'user-not-found']);
  assert.deepEqual(kindOf(await ann('DELETE', '/users/ann')), [409, 'last-manager']);
  await ann('PUT', '/users/carol', { json: { role: 'manager' } });
  assert.equal((await ann('DELETE', '/users/ann')).status, 204, 'also herself');
  assert.equal((await ann('GET', '/plants')).status, 401);
});

itOnce('a manager cannot see or change users of another store, and a member none', async () => {
  const [here, there] = [await setUp(), await setUp()];
  const bob = await here.user('bob', { scopes });
  const dave = await there.token('dave');
  for (const [method, path, json] of [
    ['PUT', '/users/dave', { role: 'manager' }],
    ['DELETE', '/users/dave', undefined],
    ['GET', '/users/dave/access?plant=1', undefined],
  ] as const) {
    assert.deepEqual(kindOf(await here.ann(method, path, { json })), [404, 'user-not-found']);
    assert.deepEqual(kindOf(await bob(method, path, { json })), [403, 'manager-required']);
  }
  await bob('POST', '/plants', { json: { name: 'Fern' } });
  assert.equal((await here.ann('DELETE', '/users/bob?plants-to=dave')).status, 400);
  assert.equal((await here.ann('DELETE', `/tokens/${idOf(dave)}`)).status, 404);
  const invited = await here.ann('POST', '/users/dave/tokens', { json: { invitation: {} } });
  const guest = here.as(tokenIn(await here.as(tokenIn(invited))('POST', '/tokens')));
  assert.partialDeepStrictEqual((await guest('GET', '/token')).json, { store: here.store });
  assert.deepEqual((await there.ann('GET', '/users')).json, [
    { user: 'ann', role: 'manager', plants: 0 },
    { user: 'dave', role: 'member', plants: 0 },
  ]);
  assert.equal((await there.as(dave)('GET', '/plants')).status, 200);
  assert.deepEqual(kindOf(await bob('GET', '/users')), [403, 'manager-required']);
  assert.deepEqual(kindOf(await bob('POST', '/users/eve/tokens')), [403, 'manager-required']);
});

itOnce('explains what a user can do with a plant', async () => {
  const { ann, user } = await setUp();
  const [bob, carol] = [await user('bob', { scopes }), await user('carol')];
  await bob('POST', '/plants', { json: { name: 'Fern' } });
  const rules = async (name: string, plant = 1) => {
    const { json } = await ann('GET', `/users/${name}/access?plant=${plant}`);
    const { owner, read, write } = json as Record<string, { allowed: boolean; rule: string }>;
    return [owner, read?.allowed, read?.rule, write?.allowed, write?.rule];
  };
  assert.deepEqual(await rules('bob'), ['bob', true, 'owner', true, 'owner']);
  assert.deepEqual(await rules('ann'), ['bob', true, 'manager', true, 'manager']);
  assert.deepEqual(await rules('carol'), ['bob', false, 'no-access', false, 'no-access']);
  await bob('PUT', '/team-share', { json: { access: 'read' } });
  assert.deepEqual(await rules('carol'), ['bob', true, 'share', false, 'share-for-reading']);
  assert.equal((await carol('GET', '/plants/1')).status, 200);
  assert.deepEqual(await rules('carol', 2), [undefined, false, 'no-plant', false, 'no-plant']);
});

itOnce('nobody gives more than their own token has', async () => {
  const limited = ['plants:read', 'users:write'] as const;
  const { user, as } = inNewStore(app);
  const expiresAtMs = Date.now() + 3_600_000;
  const ann = await user('ann', { role: 'manager', scopes: limited, expiresAtMs });
  const later = new Date(expiresAtMs + 1_000).toISOString();
  const read = ['plants:read'];
  for (const [json, expected] of [
    [undefined, [403, 'insufficient-scope']],
    [{ scopes: ['plants:write'] }, [403, 'insufficient-scope']],
    [{ scopes: ['plants:write'], invitation: {} }, [403, 'insufficient-scope']],
    [{ scopes: read, expiresAt: later }, [400, 'invalid-request']],
    [{ scopes: read, renewableUntil: later }, [400, 'invalid-request']],
    [{ scopes: read, invitation: { expiresAt: later } }, [400, 'invalid-request']],
    [{ scopes: read, invitation: { uses: 101 } }, [400, 'invalid-request']],
  ] as const) {
    assert.deepEqual(kindOf(await ann('POST', '/users/bob/tokens', { json })), expected);
  }
  const json = { scopes: read, invitation: { uses: 101 } };
  const tooMany = await ann('POST', '/users/bob/tokens', { json });
  assert.partialDeepStrictEqual(tooMany.json, {
    errors: [
      { pointer: '/invitation/uses', detail: '"uses" is too large. Use an integer from 1 to 100.' },
    ],
  });
  assert.equal((await ann('GET', '/users')).text.includes('bob'), false, 'nothing was created');
  const created = await ann('POST', '/users/bob/tokens', { json: { scopes: read } });
  const { scopes: granted, expiresAt } = created.json as { scopes: string[]; expiresAt: string };
  assert.deepEqual([created.status, granted], [201, read]);
  assert.equal(expiresAt, new Date(expiresAtMs).toISOString());
  const bob = as(tokenIn(created));
  assert.equal((await bob('GET', '/plants')).status, 200);
});

itOnce('an invitation allows nothing but to look at it and to create a token', async () => {
  const { ann, as } = await setUp();
  const json = { invitation: {}, scopes };
  const guest = as(tokenIn(await ann('POST', '/users/bob/tokens', { json })));
  const { json: contract } = await app.call('GET', '/openapi.json');
  const { paths } = contract as { paths: Record<string, Record<string, { security?: unknown }>> };
  const allowed: string[] = [];
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { security }] of Object.entries(operations)) {
      if (security !== undefined) continue; // it needs no token
      const answer = await guest(method.toUpperCase(), path.replaceAll(/{\w+}/g, '1'));
      if (answer.status < 300) allowed.push(`${method} ${path}`);
      else assert.deepEqual(kindOf(answer), [403, 'token-restricted'], path);
    }
  }
  assert.deepEqual(allowed, ['get /token', 'post /tokens']);
});

itOnEach('an invitation creates one token, even if two use it at once', async (t) => {
  const { ann, as } = await setUp(await startApp(t));
  const invited = await ann('POST', '/users/bob/tokens', { json: { invitation: {} } });
  const { invitation, scopes: granted } = invited.json as { invitation: object; scopes: string[] };
  assert.deepEqual([invitation, granted], [{ uses: 1 }, ['plants:read', 'plants:write']]);
  const guest = as(tokenIn(invited));
  const further = await guest('POST', '/tokens', { json: { invitation: {} } });
  assert.deepEqual(kindOf(further), [400, 'invalid-request']);
  const { user: name, invitation: left } = (await guest('GET', '/token')).json as {
    user: string;
    invitation: object;
  };
  assert.deepEqual([name, left], ['bob', { uses: 1 }], 'looking at it changes nothing');
  const answers = await Promise.all([guest('POST', '/tokens'), guest('POST', '/tokens')]);
  const [first, second] = answers.toSorted((a, b) => a.status - b.status) as [Answer, Answer];
  assert.deepEqual([first.status, kindOf(second)], [201, [410, 'invitation-used']]);
  const bob = as(tokenIn(first));
  assert.equal((await bob('POST', '/plants', { json: { name: 'Fern' } })).status, 201);
  assert.equal((await bob('GET', '/tokens')).status, 200);
});

itOnEach('a repeated request gets the same token, and spends an invitation once', async (t) => {
  const { ann, as } = await setUp(await startApp(t));
  const invite = (json: object, key: string) =>
    ann('POST', '/users/bob/tokens', { json, headers: { 'idempotency-key': key } });
  const [invited, again] = [
    await invite({ invitation: {} }, 'a'),
    await invite({ invitation: {} }, 'a'),
  ];
  assert.equal(tokenIn(invited), tokenIn(again));
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  await invite({ invitation: { uses: 2 } }, 'wide');
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  for (const [json, key] of [
    [{ invitation: {}, label: 'other' }, 'a'],
    [{ invitation: { expiresAt } }, 'a'],
    [{ invitation: {} }, 'wide'],
  ] as const) {
    assert.deepEqual(kindOf(await invite(json, key)), [422, 'idempotency-key-reused']);
  }
  const guest = as(tokenIn(invited));
  const redeem = (key: string) => guest('POST', '/tokens', { headers: { 'idempotency-key': key } });
  const [first, repeated] = await Promise.all([redeem('b'), redeem('b')]);
  assert.deepEqual([first.status, repeated.status], [201, 201]);
  assert.equal(tokenIn(first), tokenIn(repeated));
  assert.deepEqual(kindOf(await redeem('c')), [410, 'invitation-used']);
  assert.equal(tokenIn(await redeem('b')), tokenIn(first), 'after it was spent');
  const bob = as(tokenIn(first));
  const texts = new Set([tokenIn(invited), tokenIn(first)]);
  for (const key of ['a', 'b', 'c'])
    texts.add(tokenIn(await bob('POST', '/tokens', { headers: { 'idempotency-key': key } })));
  const create = (path: string) => ann('POST', path, { headers: { 'idempotency-key': 'a' } });
  for (const name of ['carol', 'dave']) texts.add(tokenIn(await create(`/users/${name}/tokens`)));
  assert.equal(texts.size, 7, 'each token, key and user gives another token');
  const [own, forSelf] = [await create('/tokens'), await create('/users/ann/tokens')];
  assert.deepEqual([own.status, kindOf(forSelf)], [201, [422, 'idempotency-key-reused']]);
});

itOnce('a renewable token is replaced by one that lasts longer, but not for ever', async () => {
  const { ann, as } = await setUp();
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
  const [soon, later, end] = [inDays(30), inDays(60), inDays(180)];
  const json = { expiresAt: soon, renewableUntil: end };
  const created = await ann('POST', '/tokens', { json });
  const device = as(tokenIn(created));
  const own = ((await ann('GET', '/token')).json as { id: string }).id;
  const parent = await device('DELETE', `/tokens/${own}`);
  assert.deepEqual(kindOf(parent), [403, 'token-restricted'], 'it is below its creator');
  const renewed = await device('POST', '/tokens', {
    json: { expiresAt: later, renewableUntil: end },
  });
  assert.equal(renewed.status, 201);
  assert.equal((await device('DELETE', '/token')).status, 204);
  const next = as(tokenIn(renewed));
  assert.equal((await next('GET', '/token')).status, 200);
  for (const terms of [
    { expiresAt: inDays(181) },
    { expiresAt: soon, renewableUntil: inDays(181) },
  ]) {
    const refused = await next('POST', '/tokens', { json: terms });
    assert.deepEqual(kindOf(refused), [400, 'invalid-request']);
  }
  const { expiresAt } = (await next('POST', '/tokens')).json as { expiresAt: string };
  assert.equal(expiresAt, later, 'other tokens end with it');
});

itOnEach(
  'two users who get the plants of each other are removed one after the other',
  async (t) => {
    const { ann, user } = await setUp(await startApp(t));
    for (const name of ['bob', 'carol']) {
      await (
        await user(name)
      )('POST', '/plants', { json: { name: 'Fern' } });
    }
    const [first, second] = await Promise.all([
      ann('DELETE', '/users/bob?plants-to=carol'),
      ann('DELETE', '/users/carol?plants-to=bob'),
    ]);
    assert.deepEqual(
      [first.status, second.status].toSorted((a, b) => a - b),
      [204, 400],
      'the one who would get the plants is gone',
    );
    const [, left] = (await ann('GET', '/users')).json as { plants: number }[];
    assert.equal(left?.plants, 2);
  },
);

itOnce('an invitation ends with the tokens that it can create', async () => {
  const { ann } = await setUp();
  const soon = new Date(Date.now() + 60_000).toISOString();
  const json = { expiresAt: soon, invitation: {} };
  const { json: invited } = await ann('POST', '/users/bob/tokens', { json });
  assert.equal((invited as { expiresAt: string }).expiresAt, soon);
});

itOnce('an invitation for many creates as many tokens as it says', async () => {
  const { ann, as } = await setUp();
  const json = { invitation: { uses: 100 } };
  const guest = as(tokenIn(await ann('POST', '/users/class/tokens', { json })));
  const statuses = [];
  for (let use = 0; use < 101; use++) statuses.push((await guest('POST', '/tokens')).status);
  assert.deepEqual(new Set(statuses.slice(0, 100)), new Set([201]));
  assert.equal(statuses[100], 410);
});

itOnEach('a manager revokes what they gave, and nobody revokes tokens of others', async (t) => {
  const { ann, user, as } = await setUp(await startApp(t));
  const given = await ann('POST', '/users/bob/tokens');
  const { id } = given.json as { id: string };
  const carol = await user('carol', { scopes });
  assert.equal((await carol('DELETE', `/tokens/${id}`)).status, 404);
  assert.equal((await ann('DELETE', `/tokens/${id}`)).status, 204);
  assert.equal((await as(tokenIn(given))('GET', '/plants')).status, 401);
  const invited = await ann('POST', '/users/bob/tokens', { json: { invitation: { uses: 2 } } });
  const pendingOf = async (name: string) => {
    const users = (await ann('GET', '/users')).json as { user: string; invitations?: string[] }[];
    return users.find((each) => each.user === name)?.invitations;
  };
  const invitation = (invited.json as { id: string }).id;
  await as(tokenIn(invited))('POST', '/tokens');
  assert.deepEqual([await pendingOf('bob'), await pendingOf('carol')], [[invitation], undefined]);
  assert.equal((await ann('DELETE', `/tokens/${invitation}`)).status, 204);
  assert.equal((await as(tokenIn(invited))('POST', '/tokens')).status, 401);
  const used = await ann('POST', '/users/bob/tokens', { json: { invitation: {} } });
  await as(tokenIn(used))('POST', '/tokens');
  assert.equal(await pendingOf('bob'), undefined);
});

itOnEach('one of two last managers who leave at once stays, and loses nothing', async (t) => {
  const { ann, user } = await setUp(await startApp(t));
  const bob = await user('bob', { role: 'manager', scopes });
  for (const one of [ann, bob]) await one('PUT', '/team-share', { json: { access: 'read' } });
  const both = [ann('DELETE', '/users/ann'), bob('DELETE', '/users/bob')] as const;
  const [first, second] = await Promise.all(both);
  assert.deepEqual(
    [first.status, second.status].toSorted((a, b) => a - b),
    [204, 409],
  );
  const stays = first.status === 409 ? ann : bob;
  assert.equal((await stays('GET', '/users')).status, 200);
  assert.equal((await stays('GET', '/team-share')).status, 200);
});

itOnEach('a key never brings back a token that has ended', async (t) => {
  const { user, as } = inNewStore(await startApp(t));
  const [bob, phone] = [await user('bob'), await user('bob')];
  const repeat = () => bob('POST', '/tokens', { headers: { 'idempotency-key': 'ci' } });
  const leaked = await repeat();
  const revoke = ({ json }: Answer) => bob('DELETE', `/tokens/${(json as { id: string }).id}`);
  await revoke(leaked);
  assert.deepEqual(kindOf(await repeat()), [422, 'idempotency-key-reused']);
  // Another token of the user creates so many that the first is deleted.
  for (let ended = 0; ended < 102; ended++) await revoke(await phone('POST', '/tokens'));
  const other = await repeat();
  assert.equal(other.status, 201);
  assert.notEqual(tokenIn(other), tokenIn(leaked));
  assert.equal((await as(tokenIn(leaked))('GET', '/plants')).status, 401);
});

itOnEach('a repeated request that has deleted old tokens gets the same token', async (t) => {
  const { ann, user, as } = await setUp(await startApp(t));
  const bob = await user('bob');
  const invited = await ann('POST', '/users/bob/tokens', { json: { invitation: {} } });
  const create = (by: typeof bob, key: string) =>
    by('POST', '/tokens', { headers: { 'idempotency-key': key } });
  const revoke = ({ json }: Answer) => bob('DELETE', `/tokens/${(json as { id: string }).id}`);
  for (let ended = 0; ended < 102; ended++) await revoke(await bob('POST', '/tokens'));
  for (const [by, key] of [
    [bob, 'ci'],
    [as(tokenIn(invited)), 'join'],
  ] as const) {
    assert.equal(tokenIn(await create(by, key)), tokenIn(await create(by, key)), key);
    await revoke(await bob('POST', '/tokens')); // so that the next one deletes the oldest
  }
});

itOnce('an invitation ends: after its time, its revocation, and with its user', async () => {
  const { ann, as } = await setUp();
  const invite = async (name: string, invitation = {}) => {
    const { json } = await ann('POST', `/users/${name}/tokens`, { json: { invitation } });
    return json as { token: string; id: string; expiresAt: string };
  };
  const { token, expiresAt } = await invite('bob');
  const days = (Date.parse(expiresAt) - Date.now()) / 86_400_000;
  assert.ok(days > 6.9 && days <= 7, expiresAt);
  const endMs = Date.now() + 500;
  const short = await invite('bob', { expiresAt: new Date(endMs).toISOString() });
  await until('the invitation has ended', () => Date.now() >= endMs);
  assert.equal((await as(short.token)('POST', '/tokens')).status, 401);
  await ann('DELETE', '/users/bob');
  assert.equal((await as(token)('POST', '/tokens')).status, 401);
  const own = await invite('ann');
  assert.equal((await ann('DELETE', `/tokens/${own.id}`)).status, 204);
  assert.equal((await as(own.token)('POST', '/tokens')).status, 401);
});
