/**
 * The documentation is true: its examples run, its tables and sections match the program, and
 * its links work.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Tokens } from 'marked';
import { problemResponses } from '../src/http/response/problems.ts';
import { run } from './support/command.ts';
import { commandsFile, commandsText } from '../tools/commands.ts';
import {
  normalise,
  Page,
  tableOf,
  tokenIds,
  type Example,
  type Section,
} from '../tools/markdown.ts';
import { problemOf } from '../tools/problems.ts';
import { problemTriggers } from './support/problem-triggers.ts';
import { emptyDatabase } from './support/storages.ts';
import { shownAddress, Terminal } from './support/terminal.ts';
import { programs, without, type Program } from './support/programs.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { name, version, scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const pages = globSync('docs/{tutorials,how-to,reference,explanation}/*.md', { cwd: root });
const withExamples = ['README.md', ...pages.toSorted()];
const all = [...globSync('*.md', { cwd: root }), ...globSync('docs/**/*.md', { cwd: root })];

for (const file of withExamples) {
  const { examples, blocks } = new Page(join(root, file));
  if (examples.length === 0) continue;
  const skip = without(...programsOf(examples));
  test(`the examples of ${file} print what it shows`, { timeout: 60_000, skip }, async (t) => {
    let url: string | undefined;
    const postgres = async () => (url ??= (await emptyDatabase(t, 'PostgreSQL')).url);
    const terminal = new Terminal(t);
    // Readers come from the README, so the database exists and its creation is not reported.
    if (file !== 'README.md') await terminal.createDatabase();
    const realIds = new Map<string, string>();
    for (const { command, output, line } of examples) {
      let real = command.replaceAll(tokenIds, (id) => realIds.get(id) ?? id);
      if (real.includes(shownPostgres)) real = real.replaceAll(shownPostgres, await postgres());
      for (const block of blocks) {
        if (block.file === undefined || !real.split(' ').includes(block.file)) continue;
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
  return programs.filter((program) => {
    const pattern = program === 'script' ? /^npm start$/ : new RegExp(`\\b${program}\\b`);
    return program !== 'curl' && examples.some(({ command }) => pattern.test(command));
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
    const byNpm = `\n> ${name}@${version} start\n> ${scripts.start}\n\n`;
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
  for (const file of all) {
    const { text, blocks } = new Page(join(root, file));
    const inline = [...text.matchAll(/`(npm [^`\n]+)`/g)].map(([, command = '']) => command);
    const lines = blocks.flatMap((block) => block.text.split('\n'));
    for (const line of [...inline, ...lines.map((one) => one.replace(/^\$ /, ''))]) {
      const [program, verb = '', script = ''] = line.split(' ');
      if (program !== 'npm' || ['ci', 'cit', 'install', 'pack'].includes(verb)) continue; // of npm itself
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

test('docs/reference/commands.md has exactly the options of every command', async () => {
  const [shared, ...sections] = new Page(commandsFile).sections;
  assert.equal(shared?.heading, 'Options of several commands');
  const ofShared = optionsOf(shared);
  const documented = sections.flatMap((section) => {
    const [, also = ''] = /^Also (.*)\.$/m.exec(section.text) ?? [];
    const names = [...also.matchAll(/`(--[^`]+)`/g)].map(([, long = '']) => long);
    const others = names.map((long) => ofShared.find(({ flag }) => flag.split(' ')[0] === long));
    return [...optionsOf(section), ...others].map((option) => ({
      command: section.heading,
      ...option,
    }));
  });
  const inOrder = (some: object[]) => some.map((one) => JSON.stringify(one)).toSorted();
  assert.deepEqual(inOrder(documented), inOrder(await settingsOf([])));
  const withOptions = new Set(documented.map(({ command }) => command));
  const others = sections.filter(({ heading }) => !withOptions.has(heading));
  assert.deepEqual(
    others.map(({ heading }) => heading),
    ['completion'],
  );
});

interface Option {
  flag: string;
  variable: string;
  initial: string;
  /** With the choices, and without the characters that Markdown needs. */
  description: string;
}

interface Setting extends Option {
  command: string;
}

/** The rows of the table of a section, which has only the columns that it needs. */
function optionsOf({ tokens }: Section): Option[] {
  const table = tokens.find(({ type }) => type === 'table') as Tokens.Table | undefined;
  const columns = (table?.header ?? []).map(({ text }) => text);
  return tableOf(tokens).map((cells) => {
    const cell = (column: string) => cells[columns.indexOf(column)] || 'none';
    return {
      flag: cell('Option'),
      variable: cell('Variable'),
      initial: cell('Default'),
      description: cell('Description').replaceAll('\\', ''),
    };
  });
}

/** Every option of a command and of those below it, as its help shows it. */
async function settingsOf(command: readonly string[]): Promise<Setting[]> {
  const { stdout, status } = await run([...command, '--help']);
  assert.equal(status, 0);
  const unwrapped = stdout.replaceAll(/\n {4,}/g, ' ');
  const options = [...unwrapped.matchAll(/^ {2}(--\S+(?: <\S+>)?) +(.*)$/gm)];
  const settings = options.map(([, flag = '', about = '']) => {
    const [, text = '', extras = ''] =
      /^(.*?)(?: \(((?:choices|default|env): .*)\))?$/.exec(about) ?? [];
    const extra = (kind: string) => {
      const pattern = new RegExp(`\\b${kind}: (.*?)(?=, (?:default|env): |$)`);
      return pattern.exec(extras)?.[1]?.replaceAll('"', '') || 'none';
    };
    const choices = extra('choices');
    return {
      command: command.join(' '),
      flag,
      variable: extra('env'),
      initial: extra('default'),
      description: choices === 'none' ? text : `${text} (${choices})`,
    };
  });
  const [, list = ''] = /^Commands:\n((?: .*\n)*)/m.exec(unwrapped) ?? [];
  const children = [...list.matchAll(/^ {2}(\w+)/gm)].map(([, child = '']) => child);
  for (const child of children) {
    if (child !== 'help') settings.push(...(await settingsOf([...command, child])));
  }
  return settings;
}

const errors = new Page(join(root, 'docs/reference/errors.md')).sections;

test('docs/reference/errors.md has a section with the status of each kind of problem', () => {
  assert.deepEqual(
    errors.map(({ heading }) => heading).toSorted(),
    Object.keys(problemResponses).toSorted(),
  );
  for (const { heading, text } of errors) {
    const [, status] = /^\s*Status (\d+)\./.exec(text) ?? [];
    const known = Object.entries(problemResponses).find(([kind]) => kind === heading);
    assert.equal(Number(status), known?.[1].status, `the status of ${heading}`);
  }
});

for (const [kind, trigger] of Object.entries(problemTriggers)) {
  test(`docs/reference/errors.md shows the response of the service for ${kind}`, async (t) => {
    const section = errors.find(({ heading }) => heading === kind);
    assert.ok(section);
    const { status, body } = await trigger(t);
    assert.equal(status, problemResponses[kind as keyof typeof problemResponses].status); // its keys are no others
    const shown = JSON.parse(normalise(JSON.stringify(problemOf(section))));
    assert.deepEqual(shown, JSON.parse(normalise(body)));
  });
}

test('every test named in the documentation exists', () => {
  let tests = 0;
  for (const file of all) {
    const { text } = new Page(join(root, file));
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
  for (const file of all) {
    for (const link of new Page(join(root, file)).links) {
      links++;
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? join(root, file) : join(root, dirname(file), path);
      assert.ok(existsSync(target), `${file} links to ${link}, which does not exist`);
      if (anchor === undefined || !statSync(target).isFile()) continue;
      assert.ok(
        new Page(target).anchors.includes(anchor),
        `${file} links to ${link}, and ${basename(target)} has no such heading`,
      );
    }
  }
  assert.ok(links > 0);
});
