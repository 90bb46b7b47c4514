/**
 * The commands as npm and npx start them in a checkout.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { databaseFile } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const checkout = fileURLToPath(new URL('../../', import.meta.url));

/** Starts npm or npx as from a shell of its own: the npm settings of the test run do not apply. */
function start(t: TestContext, command: string, args: readonly string[]) {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
  const env = { ...Object.fromEntries(own), npm_config_cache: tempFolder(t) };
  const child = spawn(command, args, { cwd: checkout, env, detached: true });
  const closed = once(child, 'close'); // when no process has its output open any more
  t.after(async () => {
    if (child.stdout.closed) return;
    process.kill(-(child.pid ?? 0), 'SIGKILL'); // and what it started
    await closed;
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => (printed += String(chunk)));
  }
  return { child, closed, output: () => printed };
}

describe('npm and npx', { concurrency: 2 }, () => {
  it('npx plant-store serve stops when npx gets SIGTERM, with and without workers', async (t) => {
    for (const workers of ['1', '2']) {
      const { url } = databaseFile(t);
      const args = ['plant-store', 'serve', '--port', '0', '--workers', workers, '--database', url];
      const { child, closed, output } = start(t, 'npx', args);
      await until('it listens', () => /"msg":"listening"/.test(output()), 30_000);
      child.kill('SIGTERM');
      await closed;
      assert.match(output(), /"msg":"stopped"/);
    }
  });

  it('npm start with flags before -- is refused, with the right command', async (t) => {
    const { url } = databaseFile(t);
    for (const flags of [['--port=0'], ['--port', '0']]) {
      const { closed, output } = start(t, 'npm', ['start', ...flags, '--', '--database', url]);
      assert.deepEqual(await closed, [2, null]);
      const error =
        'error: npm keeps flags for itself unless they follow --. Use: npm start -- --port <number>';
      assert.ok(output().includes(error), output());
    }
  });

  it('npm start prints nothing of npm but the command', async (t) => {
    const { closed, output } = start(t, 'npm', ['start', '--', '--port', 'none']);
    assert.deepEqual(await closed, [2, null]);
    assert.match(output(), /^\n> plant-store@.* start\n> exec node .*\n\nerror: option '--port /);
  });
});
