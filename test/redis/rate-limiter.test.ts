/**
 * The limit on the rate of requests in a real Redis, which several processes share.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { TokenBuckets, type Rate, type RateLimiter } from '../../src/shared/token-buckets.ts';
import { connect, setUp, startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { without } from '../support/programs.ts';

/** A request waits for Redis for 250 ms, and this machine can be busy. */
const maxWaitMs = 2_000;

const limiters: Record<string, (t: TestContext, rate: Rate) => RateLimiter | Promise<RateLimiter>> =
  {
    memory: (_, rate) => new TokenBuckets(rate),
    Redis: async (t, rate) => connect(t, (await startRedis(t)).url, rate),
  };

for (const [name, open] of Object.entries(limiters)) {
  const skip = name === 'Redis' && without('redis-server');
  describe(`a token bucket in ${name}`, { skip }, () => {
    it('is full at first, and refuses when it is empty', async (t) => {
      const limiter = await open(t, { requests: 3, windowSeconds: 3_600 });
      for (const [isAllowed, remaining] of [
        [true, 2],
        [true, 1],
        [true, 0],
        [false, 0],
        [false, 0],
      ] as const) {
        const state = await limiter.take('alice');
        assert.deepEqual([state.isAllowed, state.remaining], [isAllowed, remaining]);
        assert.ok(state.nextMs > 1_100_000 && state.nextMs <= 1_200_000, `${state.nextMs} ms`);
      }
      assert.equal((await limiter.take('bob')).remaining, 2);
    });

    it('refills steadily, not at once', async (t) => {
      const limiter = await open(t, { requests: 600, windowSeconds: 60 });
      while ((await limiter.take('alice')).isAllowed);
      const { nextMs } = await limiter.take('alice');
      assert.ok(nextMs <= 100, `the next one in ${nextMs} ms`);
      // Again, if requests that Redis missed have counted in this process.
      await until('ten take a second', async () => {
        const startedMs = performance.now();
        for (let allowed = 0; allowed < 10;) {
          if ((await limiter.take('alice')).isAllowed) allowed++;
        }
        return performance.now() - startedMs >= 900;
      });
    });
  });
}

describe('buckets in Redis', { skip: without('redis-server') }, () => {
  it('expire when they would be full', async (t) => {
    const redis = await startRedis(t);
    const limiter = await connect(t, redis.url, { requests: 5, windowSeconds: 60 });
    const key = 'plant-store:5/60:alice';
    // On a busy machine, Redis can miss the time limit of a request, which then counts in this process.
    await until('Redis has the bucket', async () => {
      await limiter.take('alice');
      return (await redis.run('KEYS', '*')) === key;
    });
    const expiresMs = Number(await redis.run('PTTL', key));
    assert.ok(expiresMs > 0 && expiresMs <= 60_000, `${expiresMs} ms`);
  });

  it('are those of this process while Redis is paused or killed', async (t) => {
    const redis = await startRedis(t);
    const limiter = await connect(t, redis.url, { requests: 1_000, windowSeconds: 3_600 });
    /** Takes 100 units at once. */
    const assertRemaining = async (expected: number) => {
      const startedMs = performance.now();
      const states = await Promise.all(Array.from({ length: 100 }, () => limiter.take('alice')));
      assert.ok(performance.now() - startedMs < maxWaitMs);
      const remaining = Math.min(...states.map((state) => state.remaining));
      assert.ok(remaining >= expected && remaining < expected + 50, `${remaining} remain`); // it refills
    };
    const isInRedis = (key: string) =>
      until('Redis counts again', async () => {
        await limiter.take(key);
        return (await redis.run('EXISTS', `plant-store:1000/3600:${key}`)) === '1';
      });
    await assertRemaining(900);

    redis.signal('SIGSTOP');
    await assertRemaining(900); // counted from the beginning
    await assertRemaining(800);
    redis.signal('SIGCONT');
    await isInRedis('bob');

    await redis.kill();
    await assertRemaining(700);
    await redis.restart();
    await isInRedis('carol');
  });
});

describe('serve with --rate-limit-redis', { skip: without('redis-server') }, () => {
  it('shares one limit between two replicas', async (t) => {
    const redis = await startRedis(t);
    const limit = ['--rate-limit', '10/h', '--rate-limit-redis', redis.url];
    const { start, ask } = await setUp(t, limit);
    const replicas = [await start(), await start()] as const;
    for (let at = 0; at < 10; at++) {
      const { status, headers } = await ask(replicas[at % 2 === 0 ? 0 : 1]);
      assert.equal(status, 200);
      assert.equal(headers.get('ratelimit-policy'), '"token";q=10;w=3600');
      assert.match(headers.get('ratelimit') ?? '', new RegExp(`^"token";r=${9 - at};t=3\\d\\d$`));
    }
    for (const replica of replicas) {
      const { status, headers } = await ask(replica);
      assert.equal(status, 429);
      assert.match(headers.get('retry-after') ?? '', /^3\d\d$/);
      assert.doesNotMatch(replica.log(), /Redis/);
      assert.equal(await replica.stop(), 0);
    }
  });
});
