/**
 * Help, and the advice after wrong usage.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { program } from '../../src/cli/main.ts';
import { run, runHere, runOk } from '../support/command.ts';
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

  it('is suggested after wrong usage, with exit status 2', async () => {
    const misuses = {
      frobnicate: "error: unknown command 'frobnicate'",
      'token frobnicate': "error: unknown command 'frobnicate'",
      'serve --frobnicate': "error: unknown option '--frobnicate'",
      'serve 8081': "error: too many arguments for 'serve': 8081. Did you mean --port 8081?\n",
      'token create': "error: missing required argument 'user'",
      'serve --port': "error: option '--port <number>' argument missing",
    };
    for (const [args, message] of Object.entries(misuses)) {
      const { status, stdout, stderr } = await runHere(args.split(' '));
      assert.deepEqual([status, stdout], [2, ''], args);
      assert.ok(stderr.startsWith(message), stderr);
      assert.match(stderr, /\(add --help for usage\)/);
    }
  });

  it('is not needed for an address without its scheme: the message has the whole address', async () => {
    const corrected = {
      'plants list --url localhost:8080': 'http://localhost:8080',
      'plants list --url plants.example/api': 'https://plants.example/api',
      'serve --base-url 127.0.0.1': 'http://127.0.0.1',
      'token list --database /x.db': 'sqlite:/x.db',
      'copy --from plants.db': 'sqlite:plants.db',
    };
    for (const [args, address] of Object.entries(corrected)) {
      const { status, stderr } = await runHere(args.split(' '));
      assert.equal(status, 2, args);
      assert.ok(stderr.includes(` Did you mean ${address}?\n`), stderr);
    }
    for (const args of ['plants list --url ftp://x', 'token list --database mysql:x']) {
      assert.doesNotMatch((await run(args.split(' '))).stderr, /Did you mean/);
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
