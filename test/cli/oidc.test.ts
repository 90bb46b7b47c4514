/**
 * serve --oidc-...: the flags and their variables, and the log.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { audience, startProvider } from '../support/provider.ts';
import { until } from '../support/until.ts';
import { tokenOf } from './oidc.ts';

describe('serve with an identity provider', () => {
  it('uses the variables: of a provider that differs from the standard', async (t) => {
    const provider = await startProvider(t);
    const env = {
      PLANT_STORE_OIDC_ISSUER: provider.issuer,
      PLANT_STORE_OIDC_AUDIENCE: audience,
      PLANT_STORE_OIDC_TOKEN_TYPE: 'jwt',
      PLANT_STORE_OIDC_USER_CLAIM: 'preferred_username',
      PLANT_STORE_OIDC_STORE: 'north',
      PLANT_STORE_OIDC_ROLE_CLAIM: 'realm_access.roles',
      PLANT_STORE_OIDC_MANAGER_VALUE: 'head-gardener',
      PLANT_STORE_OIDC_SCOPE_PREFIX: 'api://plants/',
      PLANT_STORE_OIDC_CLIENT_ID: 'page',
      PLANT_STORE_OIDC_CLIENT_SCOPE: 'openid api://plants/.default',
    };
    const service = await serve(t, ['--database', databaseFile(t).url], { env });
    const claims = {
      client_id: undefined,
      azp: 'app',
      preferred_username: 'alice',
      realm_access: { roles: ['head-gardener'] },
      scope: 'openid api://plants/plants:read',
    };
    const token = await provider.sign({ ...claims, sub: 'f:1' }, { typ: 'JWT' });
    assert.partialDeepStrictEqual(await tokenOf(service.address, token), {
      status: 200,
      user: 'alice',
      store: 'north',
      role: 'manager',
      scopes: ['plants:read'],
    });
    const { text } = await call(service.address, 'GET');
    const settings = { issuer: provider.issuer, clientId: 'page' };
    const onPage = JSON.stringify({ ...settings, scope: 'openid api://plants/.default' });
    assert.ok(text.includes(onPage.replaceAll('"', '&quot;')));
    assert.equal(await service.stop(), 0);
    assert.match(service.log(), /"msg":"identity provider available"/);
  });

  it('starts without it, logs why, and logs when it is there', async (t) => {
    const provider = await startProvider(t);
    const token = await provider.sign();
    await provider.stop();
    const flags = ['--oidc-issuer', provider.issuer, '--oidc-audience', audience];
    const service = await serve(t, ['--database', databaseFile(t).url, ...flags]);
    await until('it is logged', () => service.log().includes('identity provider unavailable'));
    assert.match(service.log(), /ECONNREFUSED/);
    assert.equal((await tokenOf(service.address, token))['status'], 503);
    await provider.start();
    await until(
      'the token is accepted',
      async () => (await tokenOf(service.address, token))['status'] === 200,
    );
    assert.match(service.log(), /"msg":"identity provider available"/);
    assert.ok(!service.log().includes(token.slice(0, 40)), 'no token is logged');
  });

  it('refuses JWTs without the flags', async (t) => {
    const provider = await startProvider(t);
    const service = await serve(t, ['--database', databaseFile(t).url]);
    const { status, detail } = await tokenOf(service.address, await provider.sign());
    assert.equal(status, 401);
    assert.match(String(detail), /This is not a Plant Store token/);
  });
});
