/**
 * Providers that change their keys, are down or hostile. Nobody gets in falsely, and those whose key is known
 * notice nothing.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import type { JWK } from 'jose';
import { fetchIntervalMs } from '../../src/oidc/fetch.ts';
import { call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { audience, makeKey, startProvider } from '../support/provider.ts';
import { until } from '../support/until.ts';
import { promptMs, sendJson, start, testFault, unknown, weakKey, withKeys } from './faults.ts';

describe('a provider', { concurrency: true }, () => {
  it('is asked once for all requests with unknown keys', async (t) => {
    const { provider, ask } = await start(t);
    assert.equal((await ask(await provider.sign())).status, 200);
    provider.requests.length = 0;
    const startedMs = performance.now();
    const tokens = await Promise.all(
      Array.from({ length: 200 }, (_, at) => provider.sign({}, { kid: `unknown ${at}` })),
    );
    const answers = await Promise.all(tokens.map(ask));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([401]));
    const fetches = provider.requests.filter((path) => path === '/jwks').length;
    const allowed = Math.ceil((performance.now() - startedMs) / fetchIntervalMs);
    assert.ok(fetches >= 1 && fetches <= allowed, `${fetches} fetches of ${allowed}`);
  });

  it('that is down does not affect tokens whose key is known', async (t) => {
    const { provider, ask } = await start(t);
    const used = await provider.sign();
    assert.equal((await ask(used)).status, 200);
    const unused = await provider.sign({ sub: 'bob' });
    const ofUnknownKey = await provider.sign({}, unknown);
    await provider.stop();
    const strangers = Array.from({ length: 50 }, () => ask(ofUnknownKey));
    for (const token of [used, unused]) {
      const { status, ms } = await ask(token);
      assert.equal(status, 200);
      assert.ok(ms < promptMs, `${ms} ms`);
    }
    for (const { status, headers } of await Promise.all(strangers)) {
      assert.deepEqual([status, headers.get('retry-after')], [503, '5']);
    }
  });

  it('that is down does not prevent the start of the service, and is found once it is up', async (t) => {
    const { provider, ask, token } = await start(t);
    await provider.stop();
    const theirs = await provider.sign();
    assert.equal((await ask(theirs)).status, 503);
    assert.equal((await ask(await token('alice'))).status, 200);
    await provider.start();
    await until('it is found', async () => (await ask(theirs)).status === 200);
  });

  testFault('that is another issuer');
  testFault('that sends garbage');
});

const publicOf = ({ kty, n, e, kid, alg, use }: JWK) => ({ kty, n, e, kid, alg, use });

describe('a set of keys with some that cannot be used', () => {
  it('has all others used, also new ones, and the log names the unusable ones once', async (t) => {
    const provider = await startProvider(t);
    const service = await serve(t, ['--oidc-issuer', provider.issuer, '--oidc-audience', audience]);
    const statusOf = async (kid: string) => {
      const key = provider.keys.find((one) => one.kid === kid);
      const token = await provider.sign({}, { kid }, key);
      return (await call(`${service.address}/plants`, 'GET', { token })).status;
    };
    assert.equal(await statusOf('first'), 200);
    provider.keys = [...provider.keys, await makeKey('second')];
    const malformed = { kty: 'RSA', kid: 'malformed', n: '!', e: 'AQAB' };
    const keys = [null, await weakKey('weak'), malformed, ...provider.keys.map(publicOf)];
    provider.instead = withKeys(provider, sendJson({ keys }));
    assert.equal(await statusOf('second'), 200);
    assert.equal(await statusOf('first'), 200);
    assert.equal(await statusOf('weak'), 401); // after they were fetched again
    const reports = service.log().match(/^.*unusable identity provider keys.*$/gm) ?? [];
    assert.equal(reports.length, 1, service.log());
    assert.match(reports[0] ?? '', /weak.*1024 bits.*malformed/);
  });
});

describe('many tokens that must be verified', () => {
  it('from one address do not keep out those of another', async (t) => {
    const { provider, address, ask } = await start(t);
    const attacker = await makeKey('first');
    const forged = await Promise.all(
      Array.from({ length: 300 }, (_, at) => provider.sign({ jti: `${at}` }, {}, attacker)),
    );
    const flood = forged.map(async (token) => {
      const headers = { authorization: `Bearer ${token}` };
      const sent = request(`${address}/plants`, { headers, localAddress: '127.0.0.2' }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.resume();
      return response.statusCode;
    });
    assert.equal((await ask(await provider.sign())).status, 200);
    for (const status of await Promise.all(flood)) assert.ok([401, 503].includes(status ?? 0));
  });
});
