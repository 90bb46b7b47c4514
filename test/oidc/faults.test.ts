/**
 * Providers that change their keys, are down, slow or hostile. Nobody gets in falsely, and those whose key is known
 * notice nothing.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage, type RequestListener } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { fetchIntervalMs } from '../../src/oidc/keys.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { call, startApp } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { audience, makeKey, startProvider, type TestProvider } from '../support/provider.ts';
import { until } from '../support/until.ts';

/** A request that does not wait for the provider must be answered in this time, also on a slow machine. */
const promptMs = 2_000;

async function start(t: TestContext) {
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
const unknown = { kid: 'unknown' };

describe('a provider that rotates its keys', { concurrency: true }, () => {
  it('has no token refused while requests run', async (t) => {
    const { provider, ask } = await start(t);
    const end = new AbortController();
    const statuses: number[] = [];
    const runClient = async () => {
      while (!end.signal.aborted) {
        const { status } = await ask(await provider.sign());
        statuses.push(status);
      }
    };
    const runAttacker = async () => {
      while (!end.signal.aborted)
        assert.equal((await ask(await provider.sign({}, unknown))).status, 401);
    };
    const clients = [runClient(), runClient(), runClient(), runAttacker()];
    for (const kid of ['second', 'third']) {
      const count = statuses.length;
      const next = await makeKey(kid);
      provider.publish([next, ...provider.keys]);
      provider.keys = [next, ...provider.keys];
      await until('tokens of the new key were used', () => statuses.length > count + 20);
    }
    end.abort();
    await Promise.all(clients);
    assert.deepEqual(new Set(statuses), new Set([200]));
  });

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
});

describe('a provider that is down', { concurrency: true }, () => {
  it('costs nothing to those whose key is known', async (t) => {
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

  it('does not prevent the start of the service, and is found once it is up', async (t) => {
    const { provider, ask, token } = await start(t);
    await provider.stop();
    const theirs = await provider.sign();
    assert.equal((await ask(theirs)).status, 503);
    assert.equal((await ask(await token('alice'))).status, 200);
    await provider.start();
    await until('it is found', async () => (await ask(theirs)).status === 200);
  });
});

const sendJson =
  (value: unknown): RequestListener =>
  (_request, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value));

/** Sends the metadata of the provider, and responds to requests for keys with `keys`. */
const withKeys =
  (provider: TestProvider, keys: RequestListener): RequestListener =>
  (asked, response) => {
    const { issuer } = provider;
    const metadata = sendJson({ issuer, jwks_uri: `${issuer}/jwks` });
    (asked.url?.startsWith('/.well-known') ? metadata : keys)(asked, response);
  };

async function weakKey(kid = 'first'): Promise<JWK> {
  const { publicKey } = await generateKeyPair('RS256', { modulusLength: 2_048, extractable: true });
  const jwk = await exportJWK(publicKey);
  return { ...jwk, n: Buffer.alloc(128, 0xc1).toString('base64url'), kid };
}

const publicOf = ({ kty, n, e, kid, alg, use }: JWK) => ({ kty, n, e, kid, alg, use });

let sentMegabytes = 0;

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
const faults: Record<
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

/** At most some services at a time, because each has threads and connections of its own. */
const concurrency = 3;

describe('a provider', { concurrency }, () => {
  for (const [fault, respond] of Object.entries(faults)) {
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
      provider.instead = await respond(provider, evil);
      provider.requests.length = 0;
      const stranger = ask(await provider.sign({}, unknown, evil));
      await until('the provider is asked', () => provider.requests.length > 0);
      await askKnown();
      const { status, ms } = await stranger;
      assert.equal(status, 503);
      assert.ok(ms < fetchIntervalMs + 3_000 + promptMs, `${ms} ms`);
      const failure = failures.at(-1);
      assert.ok(failure instanceof Error, 'the operator learns why');
      const isSlow = /hangs|byte a second/.test(fault);
      assert.equal(/does not respond within 3 s/.test(failure.message), isSlow, failure.message);
      await askKnown();
    });
  }

  for (const fault of ['that hangs', 'that sends 100 MB', 'that sends garbage']) {
    it(`${fault} from the start does not stop the service`, async (t) => {
      const { provider, ask, token } = await start(t);
      provider.instead = await faults[fault]?.(provider, await makeKey('evil'));
      const theirs = await provider.sign();
      assert.equal((await ask(await token('alice'))).status, 200);
      const { status, ms } = await ask(theirs);
      assert.equal(status, 503);
      assert.ok(ms < 3_000 + promptMs, `${ms} ms`);
      assert.ok(sentMegabytes < 20, `${sentMegabytes} MB were read`);
      provider.instead = undefined;
      await until('the provider is asked again', async () => (await ask(theirs)).status === 200);
    });
  }
});

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
