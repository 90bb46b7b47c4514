/**
 * What the claims of a token grant, under each setting.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext } from 'node:test';
import type { OidcOptions } from '../../src/oidc/options.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { startApp } from '../support/app.ts';
import { startProvider } from '../support/provider.ts';
import { itOnce as it } from '../support/storages.ts';

interface Seen {
  status: number;
  user?: string;
  store?: string;
  role?: string;
  scopes?: string[];
  detail?: string;
}

/** Returns a function that shows what a token with these claims grants. */
async function start(t: TestContext, options: Partial<OidcOptions>) {
  const provider = await startProvider(t);
  const { call } = await startApp(t, { verifier: new Verifier(provider.options(options)) });
  return async (claims: object): Promise<Seen> => {
    const { status, json } = await call('GET', '/token', { token: await provider.sign(claims) });
    return { ...(json as object), status };
  };
}

describe('claims', () => {
  it('name the user: any claim can, also one in an object', async (t) => {
    const see = await start(t, { userClaim: 'account.name' });
    assert.equal((await see({ account: { name: 'Zoë Müller' } })).user, 'Zoë Müller');
    assert.equal((await see({ 'account.name': 'flat', account: { name: 'deep' } })).user, 'flat');
    for (const account of [undefined, null, 'name', {}, { name: 7 }, { name: ' ' }, ['name']]) {
      assert.equal((await see({ account })).status, 401, JSON.stringify(account));
    }
    const inherited = await start(t, { userClaim: 'constructor.name' });
    assert.equal((await inherited({})).status, 401);
  });

  it('name the user by email only if the provider has verified it', async (t) => {
    const see = await start(t, { userClaim: 'email' });
    const email = 'alice@plants.example';
    assert.equal((await see({ email, email_verified: true })).user, email);
    for (const verified of [undefined, false, 'true', 1]) {
      const { status, detail } = await see({ email, email_verified: verified });
      assert.equal(status, 401);
      assert.match(detail ?? '', verified === 'true' ? /is the text "true"/ : /email_verified/);
    }
  });

  it('name the store, or all users belong to one', async (t) => {
    const one = await start(t, { store: 'north' });
    assert.equal((await one({ nursery: 'south' })).store, 'north');
    const many = await start(t, { storeClaim: 'nursery' });
    assert.equal((await many({ nursery: 'south' })).store, 'south');
    assert.equal((await many({ nursery: ['south'] })).status, 401);
    assert.equal((await many({})).status, 401);
  });

  it('make a manager, for as long as the token has the value', async (t) => {
    const see = await start(t, { roleClaim: 'realm_access.roles', managerValue: 'head gardener' });
    const roleWith = async (roles: unknown) => (await see({ realm_access: { roles } })).role;
    assert.equal(await roleWith(['gardener', 'head gardener']), 'manager');
    assert.equal(await roleWith('head gardener'), 'manager');
    for (const roles of [['gardener'], 'head gardeners', [['head gardener']], {}, undefined]) {
      assert.equal(await roleWith(roles), 'member', JSON.stringify(roles));
    }
  });

  it('grant the scopes that are ours, with their prefix', async (t) => {
    const see = await start(t, {});
    const both = ['plants:read', 'plants:write'];
    assert.deepEqual((await see({ scope: 'openid plants:write plants:read' })).scopes, both);
    assert.deepEqual((await see({ scope: undefined, scp: both })).scopes, both);
    assert.deepEqual((await see({ scope: undefined, scp: 'plants:read' })).scopes, ['plants:read']);
    for (const scope of [undefined, '', 'PLANTS:READ', 'plants:read2', 7, { 0: 'plants:read' }]) {
      assert.deepEqual((await see({ scope })).scopes, [], JSON.stringify(scope));
    }
    const prefixed = await start(t, { scopePrefix: 'api://plants/' });
    const scope = 'plants:write api://plants/plants:read';
    assert.deepEqual((await prefixed({ scope })).scopes, ['plants:read']);
  });
});
