/**
 * The settings of the limits. test/http/request-limits.test.ts tests what they do.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { call } from '../support/app.ts';
import { runHere, serve } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile, fill } from '../support/database.ts';
import { makeToken } from '../../src/token.ts';
import { startRedis } from '../support/redis.ts';
import { without } from '../support/programs.ts';

async function start(t: TestContext, args: readonly string[], env: Record<string, string> = {}) {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 1);
  const service = await serve(t, ['--database', url, ...args], { env });
  const ask = (used: string, headers: Record<string, string> = {}) =>
    call(`${service.address}/plants`, 'GET', { token: used, headers });
  return { service, token, ask };
}

describe('the limits of serve', { concurrency: 2 }, () => {
  it('have documented defaults: no rate, 600 failed authentications in a minute', async (t) => {
    const { token, ask } = await start(t, []);
    for (let at = 0; at < 700; at++) {
      const { status, headers } = await ask(token);
      assert.deepEqual([status, headers.get('ratelimit')], [200, null]);
    }
    const statuses: number[] = [];
    while (statuses.at(-1) !== 429) statuses.push((await ask(makeToken(1))).status);
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
    const { service, token, ask } = await start(t, [], {
      PLANT_STORE_RATE_LIMIT: '1000/m',
      PLANT_STORE_RATE_LIMIT_REDIS: redis.url,
      PLANT_STORE_AUTH_FAILURE_LIMIT: 'off',
      PLANT_STORE_MAX_REQUESTS_IN_PROGRESS: '1',
      PLANT_STORE_TRUST_PROXY: '127.0.0.1',
    });
    assert.equal((await ask(token)).headers.get('ratelimit-policy'), '"token";q=1000;w=60');
    assert.match(await redis.run('KEYS', '*'), /^plant-store:1000\/60:/);
    for (let at = 0; at < 700; at++) assert.equal((await ask('invalid')).status, 401);

    const connection = new Connection(service.address);
    t.after(() => connection.socket.destroy());
    connection.write(`POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`);
    connection.write(
      'Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
    ); // no body follows
    assert.equal((await connection.answer())?.status, 100);
    assert.equal((await ask(token)).headers.get('ratelimit'), '"in-progress";r=0');
  });

  it('hold for each worker', async (t) => {
    const { token, ask, service } = await start(t, ['--workers', '2', '--rate-limit', '5/h']);
    const statuses: number[] = [];
    for (let at = 0; at < 12; at++) statuses.push((await ask(token)).status);
    const allowed = statuses.filter((status) => status === 200).length;
    assert.ok(allowed === 5 || (allowed > 5 && allowed <= 10), `${allowed} requests`);
    assert.equal(await service.stop(), 0);
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
