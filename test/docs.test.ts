/**
 * The documentation is true: its examples run, its tables and sections match the program, and
 * its links work.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import packageFile from '../package.json' with { type: 'json' };
import { program } from '../src/cli/main.ts';
import { problemKinds, type ProblemKind } from '../src/problem.ts';
import { commandsFile, commandsText } from '../tools/commands.ts';
import { normalise, Page, tokenIds, type Example } from '../tools/markdown.ts';
import { problemOf } from '../tools/problems.ts';
import { causeProblem, startFailingApp } from './support/problem-triggers.ts';
import { freePort } from './support/postgres.ts';
import { emptyDatabase } from './support/storages.ts';
import { shownAddress, Terminal } from './support/terminal.ts';
import { programs, without, type Program } from './support/programs.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { name, version } = packageFile;
const scripts: Record<string, string> = packageFile.scripts;

const pages = globSync('docs/{tutorials,how-to,reference,explanation}/*.md', { cwd: root });
const all = [...globSync('*.md', { cwd: root }), ...globSync('docs/**/*.md', { cwd: root })];
const documents = new Map(all.map((file) => [file, new Page(join(root, file))]));

for (const file of ['README.md', ...pages.toSorted()]) {
  const { examples, blocks } = documents.get(file) ?? new Page(join(root, file));
  if (examples.length === 0) continue;
  const skip = without(...programsOf(examples));
  test(`the examples of ${file} print what it shows`, { timeout: 60_000, skip }, async (t) => {
    let url: string | undefined;
    const postgres = async () => (url ??= (await emptyDatabase(t, 'PostgreSQL')).url);
    const terminal = new Terminal(t, await freePort());
    // Readers come from the README, so the database exists and its creation is not reported.
    if (file !== 'README.md') await terminal.createDatabase();
    const realIds = new Map<string, string>();
    for (const { command, output, line } of examples) {
      let real = command.replaceAll(tokenIds, (id) => realIds.get(id) ?? id);
      if (real.includes(shownPostgres)) real = real.replaceAll(shownPostgres, await postgres());
      for (const block of blocks) {
        if (block.file === undefined || !real.split(/[ '"]/).includes(block.file)) continue;
        terminal.write(block.file, block.text);
      }
      const printed = await printedBy(terminal, { command: real, output, line });
      if (output === undefined || printed === undefined) continue;
      const where = `${file}, line ${line}: ${command}\n`;
      assert.equal(where + normalise(printed), where + normalise(output));
      const ids = printed.match(tokenIds) ?? [];
      for (const [at, id] of (output.match(tokenIds) ?? []).entries()) {
        realIds.set(id, ids[at] ?? id);
      }
    }
  });
}

/** A replacement of curl is in support/curl.ts. A service shows its start on a terminal. */
function programsOf(examples: readonly Example[]): Program[] {
  return programs.filter((one) => {
    const pattern = one === 'script' ? /^npm start$/ : new RegExp(`\\b${one}\\b`);
    return one !== 'curl' && examples.some(({ command }) => pattern.test(command));
  });
}

const shownPostgres = 'postgres://plants:secret@127.0.0.1/plants';

/** What the example printed; undefined for an npm command that is not run here but checked. */
async function printedBy(
  terminal: Terminal,
  { command, output }: Example,
): Promise<string | undefined> {
  const start = /^npm start( 2>plant-store\.log \| cat)?$/.exec(command);
  if (start && output !== undefined) {
    const tty = start[1] === undefined;
    const printed = await terminal.startService({ tty });
    const byNpm = `\n> ${name}@${version} start\n> ${scripts['start']}\n\n`;
    return byNpm + (tty ? printed : printed.replaceAll(/^\{.*\n/gm, '')); // the log goes elsewhere
  }
  if (command.startsWith('npm ')) return undefined;
  const [, flags] = /^npx plant-store serve (.*) > plant-store\.log &$/.exec(command) ?? [];
  if (flags !== undefined) {
    await terminal.startService({ tty: false, flags });
    return '';
  }
  // A page says "stop every process" before it restores.
  if (/plant-store restore/.test(command)) await terminal.stopService();
  else if (command.includes(shownAddress) && !terminal.isServiceRunning) {
    await terminal.startService({ tty: false });
  }
  return terminal.run(command);
}

test('every npm command in the documentation exists', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  assert.equal(lock.version, version, 'package-lock.json is for another version');
  let commands = 0;
  for (const [file, { text, blocks }] of documents) {
    const inline = [...text.matchAll(/`(npm [^`\n]+)`/g)].map(([, command = '']) => command);
    const lines = blocks.flatMap((block) => block.text.split('\n'));
    for (const line of [...inline, ...lines.map((one) => one.replace(/^\$ /, ''))]) {
      const [npm, verb = '', script = ''] = line.split(' ');
      if (npm !== 'npm' || ['ci', 'cit', 'install', 'pack'].includes(verb)) continue; // of npm itself
      commands++;
      assert.ok(scripts[verb === 'run' ? script : verb], `${file}: there is no ${line}`);
    }
  }
  assert.ok(commands > 0);
});

test('docs/reference/commands.md is generated from the current program', async () => {
  const generated = await commandsText();
  assert.equal(readFileSync(commandsFile, 'utf8'), generated, 'run "npm run docs:commands"');
});

test('docs/reference/commands.md has every option of every command', () => {
  const { sections } = new Page(commandsFile);
  const visit = (command: CommandUnknownOpts, words: string) => {
    const visible = command.createHelp().visibleCommands(command);
    const children = visible.filter((child) => child.name() !== 'help');
    for (const child of children) visit(child, `${words} ${child.name()}`.trim());
    if (children.length > 0) return;
    const { text } = sections.find(({ heading }) => heading === words) ?? assert.fail(words);
    for (const { long } of command.options) assert.ok(text.includes(`\`${long}`), words + long);
  };
  visit(program(), '');
});

const errors = new Page(join(root, 'docs/reference/errors.md')).sections;

test('docs/reference/errors.md has a section with the status of each kind of problem', () => {
  assert.deepEqual(
    errors.map(({ heading }) => heading).toSorted(),
    Object.keys(problemKinds).toSorted(),
  );
  for (const { heading, text } of errors) {
    const [, status] = /^\s*Status (\d+)\./.exec(text) ?? [];
    const known = Object.entries(problemKinds).find(([kind]) => kind === heading);
    assert.equal(Number(status), known?.[1].status, `the status of ${heading}`);
  }
});

test('docs/reference/errors.md shows the response of the service for each kind', async (t) => {
  const app = await startFailingApp(t);
  for (const section of errors) {
    const kind = section.heading as ProblemKind; // the test above compares them
    await t.test(kind, async (inner) => {
      const { status, body } = await causeProblem(inner, app, kind);
      assert.equal(status, problemKinds[kind].status);
      const shown = JSON.parse(normalise(JSON.stringify(problemOf(section))));
      assert.deepEqual(shown, JSON.parse(normalise(body)));
    });
  }
});

test('every test named in the documentation exists', () => {
  let tests = 0;
  for (const [file, { text }] of documents) {
    // A link to a file of tests, and after it names of tests in quotes.
    for (const [, path = '', names = ''] of text.matchAll(/\]\(([^)]+\.ts)\)((?:,? "[^"|]+")+)/g)) {
      const source = readFileSync(join(root, dirname(file), path), 'utf8');
      for (const [, testName = ''] of names.matchAll(/"([^"]+)"/g)) {
        tests++;
        assert.ok(source.includes(testName), `${file}: ${path} has no test "${testName}"`);
      }
    }
  }
  assert.ok(tests > 0);
});

test('the table of log entries has each message of the service', () => {
  const page = readFileSync(join(root, 'docs/reference/operation.md'), 'utf8');
  const shown = [...page.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
  const starts = shown.filter((code) => code.endsWith('...')).map((code) => code.slice(0, -3));
  const calls = /\blog\.(?:info|warn|error)\((?:[^'()]|\([^()]*\))*'([^']+)'/g;
  const messages = globSync('src/**/*.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(calls)].map(([, message = '']) => message),
  );
  assert.ok(messages.includes('disk full'));
  for (const message of messages) {
    const isShown = shown.includes(message) || starts.some((start) => message.startsWith(start));
    assert.ok(isShown, `docs/reference/operation.md does not have "${message}"`);
  }
});

test('every link inside the documentation leads to an existing file and heading', () => {
  let links = 0;
  for (const [file, page] of documents) {
    for (const link of page.links) {
      links++;
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? file : join(dirname(file), path);
      assert.ok(existsSync(join(root, target)), `${file} links to ${link}, which does not exist`);
      if (anchor === undefined || !target.endsWith('.md')) continue;
      const { anchors } = documents.get(target) ?? new Page(join(root, target));
      assert.ok(anchors.includes(anchor), `${file} links to ${link}, which is no heading`);
    }
  }
  assert.ok(links > 0);
});
