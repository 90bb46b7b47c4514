/**
 * The commands as npm starts them in a checkout.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tempFolder } from '../support/temp.ts';

const checkout = fileURLToPath(new URL('../../', import.meta.url));

it('npm start passes on what follows --, and prints nothing of npm but the command', (t) => {
  // As from a shell of its own: the npm settings of the test run do not apply.
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
  const env = { ...Object.fromEntries(own), npm_config_cache: tempFolder(t) };
  const { status, stdout, stderr } = spawnSync('npm', ['start', '--', '--port', 'none'], {
    cwd: checkout,
    env,
    encoding: 'utf8',
  });
  assert.equal(status, 2);
  assert.match(stdout, /^\n> plant-store@.* start\n> exec node .*\n\n$/);
  assert.match(stderr, /^error: option '--port /);
});
