/**
 * Services whose Redis fails, and the commands to it meanwhile.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { freePort } from '../support/postgres.ts';
import { without } from '../support/programs.ts';
import { connect, setUp, startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('commands to Redis', { skip: without('redis-server') }, () => {
  it('are sent one at a time while Redis does not reply', async (t) => {
    const redis = await startRedis(t);
    const limiter = await connect(t, redis.url, { requests: 1_000_000, windowSeconds: 3_600 });
    redis.signal('SIGSTOP');
    for (let taken = 0; taken < 100; taken++) assert.ok((await limiter.take('alice')).isAllowed);
    redis.signal('SIGCONT');
    assert.match(await redis.run('INFO', 'commandstats'), /cmdstat_eval:calls=1,/);
  });
});

describe('serve with --rate-limit-redis', { skip: without('redis-server') }, () => {
  it('serves while Redis is paused, reports that once, and stops in time', async (t) => {
    const redis = await startRedis(t);
    const limit = ['--rate-limit', '10/h', '--rate-limit-redis', redis.url];
    const { start, ask } = await setUp(t, limit);
    const service = await start();
    assert.equal((await ask(service)).status, 200);
    redis.signal('SIGSTOP');
    for (let at = 0; at < 10; at++) assert.equal((await ask(service)).status, 200);
    assert.equal((await ask(service)).status, 429, 'it counts by itself');
    assert.equal(service.log().match(/Redis is not available/g)?.length, 1);
    redis.signal('SIGCONT');
    await until('Redis counts again', async () => (await ask(service)).status === 200);
    assert.equal(service.log().match(/Redis is available again/g)?.length, 1);
    redis.signal('SIGSTOP');
    assert.equal(await service.stop(), 0);
  });

  it('starts without Redis, and reports a wrong password without it', async (t) => {
    const redis = await startRedis(t, { password: 'right' });
    const address = redis.url.replace('//', '//:wrong@');
    for (const url of [`redis://127.0.0.1:${await freePort()}`, address]) {
      const limit = ['--rate-limit', '1/h', '--rate-limit-redis', url];
      const { start, ask } = await setUp(t, limit);
      const service = await start();
      assert.equal((await ask(service)).status, 200);
      assert.equal((await ask(service)).status, 429);
      assert.equal(service.log().match(/Redis is not available/g)?.length, 1);
      assert.match(service.log(), /ECONNREFUSED|WRONGPASS/);
      assert.doesNotMatch(service.log(), /wrong@/);
      assert.equal(await service.stop(), 0);
    }
  });
});
