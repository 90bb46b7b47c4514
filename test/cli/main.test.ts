/**
 * The program itself: its help, its completion in a shell, and its start by npm.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { program } from '../../src/cli/main.ts';
import { executable, run, runHere, runOk } from '../support/command.ts';
import { without } from '../support/programs.ts';
import { tempFolder } from '../support/temp.ts';

const checkout = fileURLToPath(new URL('../../', import.meta.url));

/** The commands that do something, each as the user types it. */
function runnable(command: CommandUnknownOpts, above: readonly string[] = []): string[] {
  const { commands } = command;
  const inner = command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => commands.includes(one));
  if (inner.length === 0) return [above.join(' ')];
  return inner.flatMap((one) => runnable(one, [...above, one.name()]));
}

// docs/reference/commands.md has all options of the help (test/docs.test.ts).
it('help has examples for every command, whose flags exist', async () => {
  const pages = new Map<string, string>();
  for (const command of runnable(program()))
    pages.set(command, await runOk([...command.split(' '), '--help']));
  assert.ok(pages.size > 20);
  const flags = new Set([...pages.values()].join().match(/(?<=^ {2})--[a-z-]+/gm)); // one can use several
  for (const [command, help] of pages) {
    assert.match(help, new RegExp(`^Usage: plant-store ${command} \\[options\\]`));
    const [, examples = ''] = help.split('\n\nExamples:\n');
    assert.match(examples, new RegExp(`^ {2}\\$ .*npx plant-store ${command}( |$)`, 'm'));
    for (const [flag] of examples.matchAll(/--[a-z-]+/g)) assert.ok(flags.has(flag), flag);
  }
});

it('without a command, help is shown with exit status 2, and --version is that of the package', async () => {
  for (const args of [[], ['token']]) {
    const { status, stdout, stderr } = await run(args);
    assert.deepEqual([status, stdout], [2, '']);
    assert.match(stderr, /^Usage: plant-store/);
  }
  const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));
  assert.equal(await runOk(['--version']), version);
});

it('completes commands, flags and choices', async () => {
  const complete = async (...words: string[]) => {
    const env = { COMP_LINE: ['plant-store', ...words].join(' ') };
    const { stdout } = await runHere(['complete', '--', 'plant-store'], { env });
    return stdout.split('\n').filter((word) => word !== '');
  };
  const all = await complete('');
  for (const command of ['serve', 'token', 'plants', 'completion'])
    assert.ok(all.includes(command));
  assert.deepEqual(await complete('token', 'cr'), ['create']);
  assert.deepEqual(await complete('token', 'create', 'alice', '--ro'), ['--role']);
  assert.deepEqual(await complete('share', 'alice', 'bob', 'w'), ['write']);
  assert.deepEqual(await complete('backup', 'comp'), []); // bash adds files itself
});

it('bash completes with the script of the command', { skip: without('bash') }, async (t) => {
  const folder = tempFolder(t);
  const file = join(folder, 'completion');
  // What bash does to complete its last argument, which can be empty.
  const completeLast = `export COMP_LINE="$*"
    $(complete -p plant-store | sed "s/.* -C '\\(.*\\)' .*/\\1/") plant-store "\${@: -1}" "\${@: -2:1}"`;
  writeFileSync(file, `${await runOk(['completion', 'bash'])}\n${completeLast}\n`);
  symlinkSync(executable, join(folder, 'plant-store'));
  const path = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter);
  const words = ['plant-store', 'token', 'create', 'alice', '--role', ''];
  const { stdout, stderr } = spawnSync('bash', [file, ...words], {
    env: { ...process.env, PATH: path },
    encoding: 'utf8',
  });
  assert.deepEqual([stdout.trim().split('\n').toSorted(), stderr], [['manager', 'member'], '']);
});

it('npm start passes on what follows --, and prints nothing of npm but the command', (t) => {
  // As from a shell of its own: the npm settings of the test run do not apply.
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
  const { status, stdout, stderr } = spawnSync('npm', ['start', '--', '--port', 'none'], {
    cwd: checkout,
    env: { ...Object.fromEntries(own), npm_config_cache: tempFolder(t) },
    encoding: 'utf8',
  });
  assert.equal(status, 2);
  assert.match(stdout, /^\n> plant-store@.* start\n> exec node .*\n\n$/);
  assert.match(stderr, /^error: option '--port /);
});
