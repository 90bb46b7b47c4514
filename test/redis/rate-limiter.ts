/**
 * Limits on the rate of requests in Redis.
 */
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import type { Rate } from '../../src/shared/token-buckets.ts';
import { RedisRateLimiter } from '../../src/redis/rate-limiter.ts';
import { call } from '../support/app.ts';
import { runOk, serve, type Service } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';

const silent = pino({ level: 'silent' });

/** Connects to Redis, and disconnects after the test. */
export async function connect(t: TestContext, url: string, rate: Rate): Promise<RedisRateLimiter> {
  const limiter = await RedisRateLimiter.connect(url, rate, silent);
  t.after(() => limiter[Symbol.asyncDispose]());
  return limiter;
}

/** A store with a token. Starts services of it with these arguments, and sends them requests. */
export async function setUp(t: TestContext, args: readonly string[]) {
  const { url } = databaseFile(t);
  const token = await runOk(['token', 'create', 'alice', '--database', url, '--yes']);
  const start = () => serve(t, ['--database', url, ...args]);
  const ask = ({ address }: Service) => call(`${address}/plants`, 'GET', { token });
  return { start, ask };
}
