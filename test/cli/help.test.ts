/**
 * Help, and the default database. words.test.ts has the advice after wrong usage.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { program } from '../../src/cli/main.ts';
import { run, runOk } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';

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

const all = runnable(program());

// docs/reference/commands.md has all options of the help (test/docs.test.ts).
describe('help', { concurrency: 2 }, () => {
  it('has examples for every command, whose flags exist', async () => {
    const pages = new Map<string, string>();
    for (const command of all) pages.set(command, await runOk([...command.split(' '), '--help']));
    assert.ok(pages.size > 20);
    const flags = new Set([...pages.values()].join().match(/(?<=^ {2})--[a-z-]+/gm)); // one can use several
    for (const [command, help] of pages) {
      assert.match(help, new RegExp(`^Usage: plant-store ${command} \\[options\\]`));
      const [, examples = ''] = help.split('\n\nExamples:\n');
      assert.match(examples, new RegExp(`^ {2}\\$ .*npx plant-store ${command}( |$)`, 'm'));
      for (const [flag] of examples.matchAll(/--[a-z-]+/g)) assert.ok(flags.has(flag), flag);
    }
  });

  it('is shown if there is no command, with exit status 2', async () => {
    for (const args of [[], ['token']]) {
      const { status, stdout, stderr } = await run(args);
      assert.deepEqual([status, stdout], [2, '']);
      assert.match(stderr, /^Usage: plant-store/);
    }
  });

  it('has --version, which prints the version of the package', async () => {
    const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    assert.equal(await runOk(['--version']), JSON.parse(file).version);
  });
});

it('without --database, the database is plant-store.db in the working directory', async (t) => {
  const cwd = tempFolder(t);
  await runOk(['migrate'], { cwd });
  assert.deepEqual(soundIds(join(cwd, 'plant-store.db')), []);
});
