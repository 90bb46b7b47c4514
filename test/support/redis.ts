/**
 * A Redis server that runs for one test and stores nothing on disk, and what counts requests in it.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { RedisRateLimiter } from '../../src/redis/rate-limiter.ts';
import type { Rate } from '../../src/shared/token-buckets.ts';
import { call } from './app.ts';
import { runOk, serve, type Service } from './command.ts';
import { databaseFile } from './database.ts';
import { freePort } from './postgres.ts';

export interface Redis {
  url: string;
  /** Runs a command of Redis. */
  run(...command: string[]): Promise<string>;
  /** Sends a signal. After SIGSTOP, it accepts connections but sends no replies. */
  signal(signal: NodeJS.Signals): void;
  /** Kills it, and waits until nobody listens. */
  kill(): Promise<void>;
  /** Starts it again at the same address, empty. */
  restart(): Promise<void>;
}

export async function startRedis(
  t: Pick<TestContext, 'after'>,
  { password }: { password?: string } = {},
): Promise<Redis> {
  const port = await freePort();
  let server = await launch(port, password);
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGKILL');
    await once(server, 'exit');
  };
  t.after(kill);
  return {
    url: `redis://127.0.0.1:${port}`,
    async run(...command) {
      const { stdout } = await promisify(execFile)('redis-cli', ['-p', String(port), ...command]);
      return stdout.trim();
    },
    signal: (signal) => void server.kill(signal),
    kill,
    restart: async () => {
      server = await launch(port, password);
    },
  };
}

async function launch(port: number, password?: string) {
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', '/tmp'];
  if (password !== undefined) settings.push('--requirepass', password);
  const server = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.includes('Ready to accept connections')) {
      server.stdout.resume();
      return server;
    }
  }
  throw new Error('redis-server does not start. On Debian: apt-get install redis-server');
}

/** Connects to Redis, and disconnects after the test. */
export async function connect(t: TestContext, url: string, rate: Rate): Promise<RedisRateLimiter> {
  const limiter = await RedisRateLimiter.connect(url, rate, pino({ level: 'silent' }));
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
