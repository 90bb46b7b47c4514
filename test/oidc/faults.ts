/**
 * Providers that misbehave.
 */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { it, type TestContext } from 'node:test';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { fetchIntervalMs } from '../../src/oidc/fetch.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { startApp } from '../support/app.ts';
import { makeKey, startProvider, type TestProvider } from '../support/provider.ts';
import { until } from '../support/until.ts';

/** A request that does not wait for the provider is answered in less: the service waits for it for 3 s. */
export const promptMs = fetchIntervalMs - 100;

export async function start(t: TestContext) {
  const provider = await startProvider(t);
  const failures: unknown[] = [];
  const verifier = new Verifier(provider.options(), (failure) => failures.push(failure));
  const app = await startApp(t, { verifier });
  const ask = async (token: string) => {
    const sentMs = performance.now();
    const { status, headers } = await app.call('GET', '/plants', { token });
    return { status, headers, ms: performance.now() - sentMs };
  };
  return { ...app, provider, failures, ask };
}

/** The kid of a key that the provider has never had. */
export const unknown = { kid: 'unknown' };

export const sendJson =
  (value: unknown): RequestListener =>
  (_request, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value));

/** Sends the metadata of the provider, and responds to requests for keys with `keys`. */
export const withKeys =
  (provider: TestProvider, keys: RequestListener): RequestListener =>
  (asked, response) => {
    const { issuer } = provider;
    const metadata = sendJson({ issuer, jwks_uri: `${issuer}/jwks` });
    (asked.url?.startsWith('/.well-known') ? metadata : keys)(asked, response);
  };

export async function weakKey(kid = 'first'): Promise<JWK> {
  const { publicKey } = await generateKeyPair('RS256', { modulusLength: 2_048, extractable: true });
  const jwk = await exportJWK(publicKey);
  return { ...jwk, n: Buffer.alloc(128, 0xc1).toString('base64url'), kid };
}

export let sentMegabytes = 0;

const endless: RequestListener = (_request, response) => {
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  sentMegabytes = 0;
  const send = () => {
    while (sentMegabytes++ < 100)
      if (!response.write(chunk)) return void response.once('drain', send);
    response.end('{"keys":[]}');
  };
  send();
};

/** How providers misbehave. `evil` is the key of an attacker. */
export const faults: Record<
  string,
  (provider: TestProvider, evil: JWK) => RequestListener | Promise<RequestListener>
> = {
  'that hangs': () => () => {},
  'that hangs after the metadata': (provider) => withKeys(provider, () => {}),
  'that sends a byte a second': (provider) =>
    withKeys(provider, (_request, response) => {
      const timer = setInterval(() => response.write(' '), 1_000);
      response.once('close', () => clearInterval(timer));
    }),
  'that sends 100 MB': (provider) => withKeys(provider, endless),
  'that sends 100 MB of metadata': () => endless,
  'that sends garbage': () => (_request, response) => void response.end('<html>'),
  'that sends no keys': (provider) => withKeys(provider, sendJson({ keys: [] })),
  'that sends something else than keys': (provider) => withKeys(provider, sendJson(null)),
  'that sends null as a key': (provider) => withKeys(provider, sendJson({ keys: [null] })),
  'that sends too many keys': (provider) =>
    withKeys(
      provider,
      sendJson({ keys: Array.from({ length: 101 }, (_, at) => ({ kty: 'oct', kid: `${at}` })) }),
    ),
  'that sends malformed keys': (provider) =>
    withKeys(provider, sendJson({ keys: [{ kty: 'RSA', kid: 'first', n: '!', e: 'AQAB' }] })),
  'that sends a secret as its key': (provider) =>
    withKeys(provider, sendJson({ keys: [{ kty: 'oct', kid: 'first', k: 'c2VjcmV0' }] })),
  'that sends a weak key': async (provider) =>
    withKeys(provider, sendJson({ keys: [await weakKey()] })),
  'that redirects': (provider, evil) =>
    withKeys(provider, (asked, response) => {
      if (asked.url === '/jwks') response.writeHead(302, { location: '/elsewhere' }).end();
      else sendJson({ keys: [evil] })(asked, response);
    }),
  'that is another issuer': (provider, evil) => (asked, response) => {
    const { issuer } = provider;
    const metadata = { issuer: `${issuer}/`, jwks_uri: `${issuer}/jwks` };
    sendJson(asked.url === '/jwks' ? { keys: [evil] } : metadata)(asked, response);
  },
  // This machine too, but spelled like an address anywhere else.
  'whose keys are at no protected address': (provider, evil) => (asked, response) => {
    const { issuer, port } = provider;
    const metadata = { issuer, jwks_uri: `http://[::ffff:127.0.0.1]:${port}/jwks` };
    sendJson(asked.url === '/jwks' ? { keys: [evil] } : metadata)(asked, response);
  },
  'that fails': () => (_request, response) => void response.writeHead(500).end('{}'),
  'that resets connections': () => (asked) => void asked.socket.destroy(),
};

/** Adds the test of a provider that begins to misbehave. */
export function testFault(fault: string): void {
  it(`${fault} lets nobody in falsely, and costs nothing to those whose key is known`, async (t) => {
    const { provider, ask, token, failures } = await start(t);
    const [used, ours] = [await provider.sign(), await token('alice')];
    const askKnown = async () => {
      for (const known of [used, ours, await provider.sign({ sub: 'bob' })]) {
        const { status, ms } = await ask(known);
        assert.equal(status, 200);
        assert.ok(ms < promptMs, `${ms} ms`);
      }
    };
    await askKnown();
    const evil = await makeKey('unknown');
    provider.instead = await faults[fault]?.(provider, evil);
    provider.requests.length = 0;
    const stranger = ask(await provider.sign({}, unknown, evil));
    await until('the provider is asked', () => provider.requests.length > 0);
    await askKnown();
    const { status, ms } = await stranger;
    assert.equal(status, 503);
    assert.ok(ms < 2 * fetchIntervalMs + promptMs, `${ms} ms`);
    const failure = failures.at(-1);
    assert.ok(failure instanceof Error, 'the operator learns why');
    const isSlow = /hangs|byte a second/.test(fault);
    assert.equal(/does not respond within 3 s/.test(failure.message), isSlow, failure.message);
    await askKnown();
  });
}
