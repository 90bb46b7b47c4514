/**
 * serve --oidc-...: the flags and their variables, and the log.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { audience, makeKey, sendJson, startProvider, weakKey } from '../support/provider.ts';
import { sizeOf } from '../support/rounds.ts';
import { until } from '../support/until.ts';

/** The service's answer about a token. */
async function tokenOf(address: string, token: string): Promise<Record<string, unknown>> {
  const { status, json } = await call(`${address}/token`, 'GET', { token });
  return { ...(json as object), status };
}

it('uses the variables, starts without the provider, logs when it is there, and names unusable keys once', async (t) => {
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
  const claims = {
    client_id: undefined,
    azp: 'app',
    preferred_username: 'alice',
    realm_access: { roles: ['head-gardener'] },
    scope: 'openid api://plants/plants:read',
    sub: 'f:1',
  };
  const token = await provider.sign(claims, { typ: 'JWT' });
  await provider.stop();
  const service = await serve(t, ['--database', databaseFile(t).url], { env });
  const { address } = service;
  await until('it is logged', () => service.log().includes('identity provider unavailable'));
  assert.match(service.log(), /ECONNREFUSED/);
  assert.equal((await tokenOf(address, token))['status'], 503);
  await provider.start();
  const isAccepted = async () => (await tokenOf(address, token))['status'] === 200;
  await until('the token is accepted', isAccepted);
  assert.match(service.log(), /"msg":"identity provider available"/);
  assert.partialDeepStrictEqual(await tokenOf(address, token), {
    user: 'alice',
    store: 'north',
    role: 'manager',
    scopes: ['plants:read'],
  });
  const { text } = await call(address, 'GET');
  const settings = { issuer: provider.issuer, clientId: 'page' };
  const onPage = JSON.stringify({ ...settings, scope: 'openid api://plants/.default' });
  assert.ok(text.includes(onPage.replaceAll('"', '&quot;')));

  const second = await makeKey('second');
  const malformed = { kty: 'RSA', kid: 'malformed', n: '!', e: 'AQAB' };
  const keys = [
    null,
    await weakKey('weak'),
    malformed,
    ...[...provider.keys, second].map(publicOf),
  ];
  provider.instead = provider.withKeys(sendJson({ keys }));
  const statusOf = async (kid: string) => {
    const signed = await provider.sign(
      claims,
      { kid, typ: 'JWT' },
      kid === 'first' ? undefined : second,
    );
    return (await tokenOf(address, signed))['status'];
  };
  assert.deepEqual([await statusOf('second'), await statusOf('first')], [200, 200]);
  assert.equal(await statusOf('weak'), 401); // after they were fetched again
  assert.equal(await service.stop(), 0);
  const reports = service.log().match(/^.*unusable identity provider keys.*$/gm) ?? [];
  assert.equal(reports.length, 1, service.log());
  assert.match(reports[0] ?? '', /weak.*1024 bits.*malformed/);
  assert.ok(!service.log().includes(token.slice(0, 40)), 'no token is logged');
});

it('uses the flags, in every worker, with a claim for the store', async (t) => {
  const workers = sizeOf({ usual: '1', long: '2' });
  const provider = await startProvider(t);
  const flags = ['--oidc-issuer', provider.issuer, '--oidc-audience', audience];
  const more = ['--oidc-store-claim', 'nursery', '--oidc-client-id', 'page', '--workers', workers];
  const service = await serve(t, ['--database', databaseFile(t).url, ...flags, ...more]);
  const token = await provider.sign({ nursery: 'south' });
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => tokenOf(service.address, token)),
  );
  for (const answer of answers)
    assert.partialDeepStrictEqual(answer, { status: 200, store: 'south', user: 'alice' });
  const { text } = await call(service.address, 'GET');
  assert.match(text, /&quot;openid plants:read plants:write shares:write&quot;/);
  assert.equal(await service.stop(), 0);
});

const publicOf = ({ kty, n, e, kid, alg, use }: Awaited<ReturnType<typeof makeKey>>) => ({
  kty,
  n,
  e,
  kid,
  alg,
  use,
});
