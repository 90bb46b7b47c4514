/**
 * Generates the reference of the commands from the program: `npm run docs:commands` writes it below the marker in
 * docs/reference/commands.md. A test compares the committed page with the generated one.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Argument, CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { format, resolveConfig } from 'prettier';
import { program } from '../src/cli/main.ts';

export const commandsFile = fileURLToPath(
  new URL('../docs/reference/commands.md', import.meta.url),
);

const marker =
  '<!-- `npm run docs:commands` generates what follows from the help of the program. Do not edit it. -->';

/** An option of as many commands is in a table of its own, so that the page stays short. */
const minCommandsOfShared = 4;

/** The page as it is committed: its text up to the marker stays. */
export async function commandsText(): Promise<string> {
  const [text = '', , ...more] = readFileSync(commandsFile, 'utf8').split(marker);
  if (more.length > 0) throw new Error(`${commandsFile} needs one line with the marker: ${marker}`);
  const commands = runnable(program());
  const shared = sharedRows(commands);
  const page = [
    text.trimEnd(),
    marker,
    '## Options of several commands',
    tableOf([...shared.values()]),
    ...commands.map((command) => sectionOf(command, shared)),
  ];
  const style = await resolveConfig(commandsFile);
  return format(`${page.join('\n\n')}\n`, { ...style, filepath: commandsFile });
}

/** The commands that do something, not those that only group others. */
function runnable(command: CommandUnknownOpts): CommandUnknownOpts[] {
  const inner = command.createHelp().visibleCommands(command);
  const children = inner.filter((each) => each.name() !== 'help');
  const own = children.length === 0 || command.registeredArguments.length > 0 ? [command] : [];
  return [...own, ...children.flatMap(runnable)];
}

type Row = readonly string[];

/** By their text, because an option with the same name can differ between commands. */
function sharedRows(commands: readonly CommandUnknownOpts[]): ReadonlyMap<string, Row> {
  const rows = commands.flatMap(({ options }) => options.map(rowOf));
  const byText = [...Map.groupBy(rows, String)];
  const shared = byText.filter(([, same]) => same.length >= minCommandsOfShared);
  return new Map(shared.map(([text, [row = []]]) => [text, row]));
}

function sectionOf(command: CommandUnknownOpts, shared: ReadonlyMap<string, Row>): string {
  const isShared = (option: Option) => shared.has(String(rowOf(option)));
  const own = command.options.filter((option) => !isShared(option));
  const also = command.options.filter(isShared).map(({ long }) => code(long));
  return [
    `## ${nameOf(command)}`,
    sentence(command.description()),
    command.registeredArguments.map(itemOf).join('\n'),
    tableOf(own.map(rowOf)),
    also.length === 0 ? '' : `Also ${also.join(', ')}.`,
  ].join('\n\n');
}

/** As the user types it after the name of the program. */
function nameOf(command: CommandUnknownOpts): string {
  const { parent } = command;
  return parent?.parent ? `${nameOf(parent)} ${command.name()}` : command.name();
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${escaped(text.slice(1))}.`;
}

/** The cells of a row: the option, its variable, its default and its description. */
function rowOf(option: Option): Row {
  const { flags, envVar, defaultValue, defaultValueDescription, argChoices } = option;
  const initial = defaultValueDescription ?? (defaultValue === undefined ? '' : `${defaultValue}`);
  const description = withChoices(option.description, argChoices);
  return [code(flags), code(envVar), initial === 'none' ? '' : code(initial), description];
}

function itemOf(argument: Argument): string {
  const { description, argChoices, required, variadic } = argument;
  const name = `${argument.name()}${variadic ? '...' : ''}`;
  const shown = required ? `<${name}>` : `[${name}]`;
  return `- ${code(shown)}: ${withChoices(description, argChoices)}`;
}

function withChoices(description: string, choices: readonly string[] = []): string {
  const list = choices.map(code).join(', ');
  return escaped(description) + (list === '' ? '' : ` (${list})`);
}

/** Without the columns that would be empty. */
function tableOf(rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  const header = ['Option', 'Variable', 'Default', 'Description'];
  const isUsed = header.map((_, column) => rows.some((cells) => cells[column] !== ''));
  const lines = [header, header.map(() => '---'), ...rows].map((cells) =>
    cells.filter((_, column) => isUsed[column]).join(' | '),
  );
  return lines.map((line) => `| ${line} |`).join('\n');
}

function code(text = ''): string {
  return text === '' ? '' : `\`${text}\``;
}

/** Text of the help can contain characters that Markdown would interpret. */
function escaped(text: string): string {
  return text.replaceAll(/[*_<|]/g, String.raw`\$&`);
}

if (import.meta.main) writeFileSync(commandsFile, await commandsText());
