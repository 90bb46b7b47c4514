/**
 * Providers that change their keys, are down or hostile. Nobody gets in falsely, and those whose key is known
 * notice nothing.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage, type RequestListener } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import type { JWK } from 'jose';
import type { Limits } from '../../src/http/auth/request-limits.ts';
import { fetchIntervalMs } from '../../src/oidc/keys.ts';
import { maxAgeMs } from '../../src/oidc/options.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { startApp } from '../support/app.ts';
import {
  makeKey,
  sendJson,
  startProvider,
  weakKey,
  type TestProvider,
} from '../support/provider.ts';
import { sizeOf } from '../support/rounds.ts';
import { until } from '../support/until.ts';

/** A request that does not wait for the provider is answered in less: the service waits for it for 3 s. */
const promptMs = fetchIntervalMs - 100;

async function start(t: TestContext, limits: Limits = {}) {
  const provider = await startProvider(t);
  const failures: unknown[] = [];
  const verifier = new Verifier(provider.options(), (failure) => failures.push(failure));
  const app = await startApp(t, { verifier, limits });
  const ask = async (token: string) => {
    const sentMs = performance.now();
    const { status, headers } = await app.call('GET', '/plants', { token });
    return { status, headers, ms: performance.now() - sentMs };
  };
  return { ...app, provider, failures, ask };
}

/** At most some services at a time, because each has threads and connections of its own. */
const concurrency = sizeOf({ usual: 3, long: 4 });

/** The kid of a key that the provider has never had. */
const unknown = { kid: 'unknown' };

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
  'that hangs after the metadata': (provider) => provider.withKeys(() => {}),
  'that sends a byte a second': (provider) =>
    provider.withKeys((_request, response) => {
      const timer = setInterval(() => response.write(' '), 1_000);
      response.once('close', () => clearInterval(timer));
    }),
  'that sends 100 MB': (provider) => provider.withKeys(endless),
  'that sends 100 MB of metadata': () => endless,
  'that sends garbage': () => (_request, response) => void response.end('<html>'),
  'that sends no keys': (provider) => provider.withKeys(sendJson({ keys: [] })),
  'that sends something else than keys': (provider) => provider.withKeys(sendJson(null)),
  'that sends null as a key': (provider) => provider.withKeys(sendJson({ keys: [null] })),
  'that sends malformed keys': (provider) =>
    provider.withKeys(sendJson({ keys: [{ kty: 'RSA', kid: 'first', n: '!', e: 'AQAB' }] })),
  'that sends a secret as its key': (provider) =>
    provider.withKeys(sendJson({ keys: [{ kty: 'oct', kid: 'first', k: 'c2VjcmV0' }] })),
  'that sends a weak key': async (provider) =>
    provider.withKeys(sendJson({ keys: [await weakKey()] })),
  'that redirects': (provider, evil) =>
    provider.withKeys((asked, response) => {
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

describe('a provider', { concurrency }, () => {
  it('is asked once for all requests with unknown keys', async (t) => {
    const { provider, ask } = await start(t);
    assert.equal((await ask(await provider.sign())).status, 200);
    provider.requests.length = 0;
    const startedMs = performance.now();
    const tokens = await Promise.all(
      Array.from({ length: 50 }, (_, at) => provider.sign({}, { kid: `unknown ${at}` })),
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

  const usual = ['that is another issuer', 'that sends garbage'];
  for (const fault of sizeOf({ usual, long: Object.keys(faults) })) testFault(fault);

  for (const fault of sizeOf({
    usual: [],
    long: ['that hangs', 'that sends 100 MB', 'that sends garbage'],
  })) {
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

// Alone, because its clients use a processor for as long as two fetches take.
if (sizeOf({ usual: false, long: true })) {
  it('a provider that rotates its keys has no token refused while requests run', async (t) => {
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
      await until('tokens of the new key were used', () => statuses.length > count + 10);
    }
    end.abort();
    await Promise.all(clients);
    assert.deepEqual(new Set(statuses), new Set([200]));
  });
}

/** Returns a function that moves the clock. Alone, because other tests would notice. */
function movableClock(t: TestContext): (ms: number) => void {
  const now = performance.now.bind(performance);
  let movedMs = 0;
  t.mock.method(performance, 'now', () => now() + movedMs);
  return (ms) => (movedMs += ms);
}

it('a key that was replaced by another one of the same id stops working within 5 minutes', async (t) => {
  const { ask, provider, failures: fetches } = await start(t);
  const move = movableClock(t);
  const status = async (one: string) => (await ask(one)).status;
  const [used, unused] = [await provider.sign(), await provider.sign({ sub: 'bob' })];
  assert.equal(await status(used), 200);
  const other = await makeKey('first');
  provider.publish([other, await makeKey('second')]);
  move(maxAgeMs);
  const count = fetches.length;
  assert.equal(await status(used), 200);
  await until('the keys were fetched', () => fetches.length > count);
  assert.deepEqual([await status(unused), await status(used)], [401, 200]);
  assert.ok(2 * maxAgeMs <= 300_000);
  move(maxAgeMs);
  assert.equal(await status(used), 401);
  assert.equal(await status(await provider.sign({}, {}, other)), 200);
});

it('a token that was accepted remains so at an address with too many failures', async (t) => {
  const { ask, provider } = await start(t, { authFailures: { requests: 1, windowSeconds: 3_600 } });
  const move = movableClock(t);
  const [used, unused] = [await provider.sign(), await provider.sign({ sub: 'bob' })];
  assert.equal((await ask(used)).status, 200);
  assert.equal((await ask('mistyped')).status, 401);
  move(maxAgeMs);
  assert.deepEqual([(await ask(used)).status, (await ask(unused)).status], [200, 429]);
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

/** Adds the test of a provider that begins to misbehave. */
function testFault(fault: string): void {
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
