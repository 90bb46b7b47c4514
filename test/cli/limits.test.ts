/**
 * The settings of the limits. test/http/request-limits.test.ts tests what they do.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runHere } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { makeToken } from '../../src/access/token.ts';
import { startRedis } from '../support/redis.ts';
import { without } from '../support/programs.ts';
import { start } from './limits.ts';

describe('the limits of serve', { concurrency: 2 }, () => {
  it('have documented defaults: no rate, 600 failed authentications in a minute', async (t) => {
    const { token, ask, statusesOf } = await start(t, []);
    const known = await statusesOf(token, ({ length }) => length < 700);
    assert.deepEqual(new Set(known), new Set([200]));
    assert.equal((await ask(token)).headers.get('ratelimit'), null);
    const statuses = await statusesOf(makeToken(1), (seen) => seen.at(-1) !== 429);
    // Ten more each second, while the loop runs.
    assert.ok(statuses.length > 600 && statuses.length < 1_500, `${statuses.length} requests`);
    assert.equal((await ask(token)).status, 200, 'a known token');
  });

  it('are set by flags', async (t) => {
    const rates = ['--rate-limit', '2/h', '--auth-failure-limit', '1/h'];
    const proxies = ['--trust-proxy', '10.0.0.0/8, 127.0.0.1'];
    const { token, ask } = await start(t, [...rates, ...proxies]);
    assert.equal((await ask(token)).headers.get('ratelimit-policy'), '"token";q=2;w=3600');
    for (const client of ['192.0.2.1', '192.0.2.2']) {
      const headers = { 'x-forwarded-for': client };
      assert.equal((await ask('invalid', headers)).status, 401);
      assert.equal((await ask('invalid', headers)).status, 429);
    }
  });

  it('are set by variables', { skip: without('redis-server') }, async (t) => {
    const redis = await startRedis(t);
    const { service, token, ask, statusesOf } = await start(t, [], {
      PLANT_STORE_RATE_LIMIT: '1000/m',
      PLANT_STORE_RATE_LIMIT_REDIS: redis.url,
      PLANT_STORE_AUTH_FAILURE_LIMIT: 'off',
      PLANT_STORE_MAX_REQUESTS_IN_PROGRESS: '1',
      PLANT_STORE_TRUST_PROXY: '127.0.0.1',
    });
    assert.equal((await ask(token)).headers.get('ratelimit-policy'), '"token";q=1000;w=60');
    assert.match(await redis.run('KEYS', '*'), /^plant-store:1000\/60:/);
    const refused = await statusesOf('invalid', ({ length }) => length < 700);
    assert.deepEqual(new Set(refused), new Set([401]));

    const connection = new Connection(service.address);
    t.after(() => connection.socket.destroy());
    connection.write(`POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`);
    connection.write(
      'Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
    ); // no body follows
    assert.equal((await connection.answer())?.status, 100);
    assert.equal((await ask(token)).headers.get('ratelimit'), '"in-progress";r=0');
  });
});

it('serve refuses invalid limits, and shows no password', async () => {
  const misuses = {
    '--rate-limit 200': /Use a number from 1 to 1000000 followed by \/s, \/m or \/h/,
    '--auth-failure-limit 1/d': /such as 200\/s; or off\./,
    '--max-requests-in-progress 0': /Use an integer from 1 to 1000000\./,
    '--trust-proxy 10.0.0.0/33': /Use IP addresses and networks/,
    '--trust-proxy 127.0.0.1/8/8': /Use IP addresses and networks/,
    '--trust-proxy proxy.example': /Use IP addresses and networks/,
    '--trust-proxy 2001:db8::/129,::1': /Use IP addresses and networks/,
    '--rate-limit-redis redis://127.0.0.1': /requires --rate-limit/,
    '--rate-limit off --rate-limit-redis redis://127.0.0.1': /requires --rate-limit/,
    '--rate-limit 1/s --rate-limit-redis rediss://:secret@': /address of Redis is not valid/,
    '--rate-limit 1/s --rate-limit-redis http://:secret@127.0.0.1': /address of Redis is not valid/,
  };
  for (const [args, message] of Object.entries(misuses)) {
    const { status, stdout, stderr } = await runHere(['serve', ...args.split(' ')]);
    assert.deepEqual([status, stdout], [2, ''], args + stderr);
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /secret/);
  }
});
