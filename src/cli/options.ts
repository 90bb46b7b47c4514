/**
 * Parsers of the command-line options. Environment variables can also set what several calls have in common, such as
 * the database.
 */
import type { TString } from '@sinclair/typebox';
import { InvalidArgumentError, Option, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { scopes, type Scope } from '../access/access.ts';
import { defaultKeepChangesMs } from '../log/change-log.ts';
import { maxId } from '../plants/ids.ts';
import { conforms, Name } from '../plants/plant.ts';
import { UsageError } from '../refusal.ts';
import { parseTimestamp } from '../shared/timestamp.ts';
import { isServiceLink } from './settings.ts';

/** The maximum number in a duration, in any unit. In days, it is 2,700 years. */
export const maxDuration = 999_999;

const defaultDatabase = 'sqlite:plant-store.db';
export const defaultUrl = 'http://127.0.0.1:8080';

/** A setting of several calls, which the variable PLANT_STORE_<NAME> can also set. Use Option for one call. */
export function flag<const Flags extends string>(flags: Flags, description: string): Option<Flags> {
  const option = new Option(flags, description);
  const variable = `PLANT_STORE_${option.name().toUpperCase().replaceAll('-', '_')}`;
  return isServiceLink(variable, process.env[variable]) ? option : option.env(variable);
}

/** Whether an option is set on the command line (`cli`), by a variable (`env`) or by a profile (`config`). */
export function isFrom(
  command: Pick<CommandUnknownOpts, 'getOptionValueSource'>,
  option: string,
  ...sources: readonly ('cli' | 'env' | 'config')[]
): boolean {
  const source = command.getOptionValueSource(option);
  return sources.some((each) => each === source);
}

export function databaseFlag() {
  return flag('--database <url>', 'address of the database: sqlite:PATH or postgres://...')
    .argParser(parseDatabaseUrl)
    .default(defaultDatabase, defaultDatabase); // a description, so that --help shows it without quotes
}

export function keepChangesFlag(description: string) {
  return flag('--keep-changes <duration>', description)
    .argParser((text) => (text === '0' ? 0 : parseDurationMs(text)))
    .default(defaultKeepChangesMs, '30d');
}

/** The store of a command about one store. */
export function inStore(description = 'store of the users') {
  return storeFlag(description).default('main');
}

export function storeFlag(description: string) {
  return flag('--store <name>', description).argParser(parseName);
}

/** The end of a help page. npx finds the program in a checkout, in a project, and if it is installed globally. */
export function examples(lines: readonly string[]): string {
  const shown = lines.map((line) => line.replaceAll('plant-store ', 'npx plant-store '));
  return `\nExamples:\n${shown.map((line) => `  $ ${line}\n`).join('')}`;
}

/** SQLite gives paths that begin with ":" or "file:" another meaning. Others read a relative path after "//". */
export function parseDatabaseUrl(text: string): string {
  if (/^(?:sqlite:(?!:|file:|\/\/(?!\/))|postgres(?:ql)?:\/\/)./is.test(text)) return text;
  const hint = 'Use sqlite:PATH or postgres://USER@HOST:PORT/DATABASE. PATH is the path of a file.';
  // InvalidArgumentError shows the text, which can contain a password.
  if (text.includes('@')) throw new UsageError(`The database address is not valid. ${hint}`);
  const isPath = text !== '' && !text.includes(':');
  throw new InvalidArgumentError(isPath ? `${hint} Did you mean sqlite:${text}?` : hint);
}

/** Returns a parser of a number. */
export function integer(min: number, max: number, what = 'an integer'): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Use ${what} from ${min} to ${max}.`);
  };
}

/** The URL without a trailing slash. */
export function parseBaseUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol) || /[?#@\s]/.test(text)) {
    throw new InvalidArgumentError(
      'Use an http or https URL without a query, a fragment or a user name, such as https://plants.example/api.' +
        suggestionFor(text),
    );
  }
  return url.href.replace(/\/+$/, '');
}

/** For a host without a scheme. */
function suggestionFor(text: string): string {
  if (!/^(?!https?:)[\w.-]+(?::\d+)?(?:\/[^?#@\s]*)?$/i.test(text)) return '';
  const isNear = /^(?:localhost|[\d.]+)(?:[:/]|$)/i.test(text);
  return ` Did you mean ${isNear ? 'http' : 'https'}://${text}?`;
}

/** A duration such as 90d, in milliseconds. */
export function parseDurationMs(text: string): number {
  const [, count, unit] = /^([1-9]\d*)([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined || Number(count) > maxDuration) {
    throw new InvalidArgumentError(
      `Use a number from 1 to ${maxDuration} followed by s, m, h or d, such as 12h or 90d.`,
    );
  }
  const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  return Number(count) * (unitMs[unit] ?? Number.NaN);
}

const localForm = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?)?$/;

/** A time in the past: how long ago, RFC 3339, or a local day or time such as 2026-11-20T10:00. */
export function parsePastMs(text: string): number {
  if (/^\d+[smhd]$/.test(text)) return Date.now() - parseDurationMs(text);
  const [, day, minute = '00:00', second = ':00'] = localForm.exec(text) ?? [];
  const local = day && `${day}T${minute}${second}`;
  const timeMs = parseTimestamp(local ? `${local}Z` : text); // refuses days that do not exist
  const pastMs = timeMs && local ? Date.parse(local) : timeMs;
  if (pastMs !== undefined && pastMs <= Date.now()) return pastMs;
  throw new InvalidArgumentError('Use a time in the past, such as 2h or 2026-11-20T10:00.');
}

/** A time in the time zone of this process, with its offset. */
export function localTime(timeMs: number): string {
  const minutes = -new Date(timeMs).getTimezoneOffset();
  const offset = new Date(Math.abs(minutes) * 60_000).toISOString().slice(11, 16);
  const local = new Date(timeMs + minutes * 60_000).toISOString().slice(0, -1);
  return `${local}${minutes < 0 ? '-' : '+'}${offset}`;
}

export function parseScopeList(text: string): Scope[] {
  const wanted = new Set(text.split(',').map((one) => one.trim()));
  const known = scopes.filter((scope) => wanted.has(scope));
  if (known.length !== wanted.size) {
    throw new InvalidArgumentError(`Use one or more of ${scopes.join(', ')}, separated by commas.`);
  }
  return known;
}

/** Returns a parser of text that is valid for the schema of a name or a tag. */
export function parserOf(schema: TString): (text: string) => string {
  return (text) => {
    if (!conforms(schema, text)) throw new InvalidArgumentError(`Use ${schema.description}.`);
    return text;
  };
}

export const parseName = parserOf(Name);
/** An id, or a number of plants, which cannot be larger. */
export const parseId = integer(1, maxId);
