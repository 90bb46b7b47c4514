/**
 * HAProxy in front of replicas, with the configuration of docs/how-to/replicas.md.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { freePort } from './postgres.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';
import { without } from './programs.ts';

const configuration = new URL('../../deploy/haproxy.cfg', import.meta.url);

/** The reason to skip tests that need HAProxy, or false. */
export const noBalancer = without('haproxy');

/** Starts HAProxy and returns its address. */
export async function balance(
  t: Pick<TestContext, 'after'>,
  replicas: readonly string[],
  adapt = (text: string) => text,
): Promise<string> {
  const port = await freePort();
  const file = join(tempFolder(t), 'haproxy.cfg');
  writeFileSync(file, adapt(balancerConfiguration(`bind 127.0.0.1:${port}`, replicas)));
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const address = `http://127.0.0.1:${port}`;
  await until('the balancer serves', async () =>
    fetch(`${address}/livez`).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  return address;
}

/** The documented configuration with this `bind` line and these replicas. */
export function balancerConfiguration(bind: string, replicas: readonly string[]): string {
  const servers = replicas.map((url, at) => `  server replica${at + 1} ${new URL(url).host}`);
  return readFileSync(configuration, 'utf8')
    .replace(/bind .*/, bind)
    .replace(/(?:^ {2}server .*\n)+/gm, `${servers.join('\n')}\n`);
}
