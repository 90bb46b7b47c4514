/**
 * Parsers of the command-line options. What several calls have in common, such as the database, can also be set by an
 * environment variable.
 */
import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import type { TString } from '@sinclair/typebox';
import { InvalidArgumentError, Option, type Command } from '@commander-js/extra-typings';
import { scopes, type Scope } from '../access/access.ts';
import { conforms, Name } from '../plants/plant.ts';
import { maxRequests, parseRate, type Rate } from '../shared/rate-limit.ts';
import { UsageError } from '../refusal.ts';
import { program } from './program.ts';

const countWorkers = integer(1, 256, 'auto or an integer');

/** In any unit. In days, these are 2,700 years. */
export const maxDuration = 999_999;

const defaultDatabase = 'sqlite:plant-store.db';

/** A setting of several calls, which the variable PLANT_STORE_<NAME> can also set. Use Option for one call. */
export function flag<const Flags extends string>(flags: Flags, description: string): Option<Flags> {
  const option = new Option(flags, description);
  return option.env(`PLANT_STORE_${option.name().toUpperCase().replaceAll('-', '_')}`);
}

export function databaseFlag() {
  return flag('--database <url>', 'address of the database: sqlite:PATH or postgres://...')
    .argParser(parseDatabaseUrl)
    .default(defaultDatabase, defaultDatabase); // a description, so that --help shows it without quotes
}

/** The options of every command that opens a database. */
export interface DatabaseOptions {
  database: string;
  json?: true | undefined;
}

/** Adds a command that opens a database. */
export function databaseCommand(parent: Command, name: string, lines: readonly string[]) {
  return parent
    .command(name)
    .addOption(databaseFlag())
    .option('--json', 'print the result as one line of JSON')
    .addHelpText('after', examples(lines));
}

export function storeFlag(description: string) {
  return flag('--store <name>', description).argParser(parserOf(Name));
}

/** The end of a help page. In the examples, `plant-store` becomes what the reader has to type. */
export function examples(lines: readonly string[]): string {
  const shown = lines.map((line) => line.replaceAll('plant-store ', `${program} `));
  return `\nExamples:\n${shown.map((line) => `  $ ${line}\n`).join('')}`;
}

export function parseDatabaseUrl(text: string): string {
  // SQLite gives these names another meaning, and other programs read a relative path behind "//".
  if (/^sqlite:(?::|file:|\/\/(?!\/))/i.test(text)) {
    throw new InvalidArgumentError(
      'Use sqlite:PATH with the path of a file, such as sqlite:plants.db or sqlite:/var/lib/plants.db. ' +
        'The data is always in a file.',
    );
  }
  if (/^(?:sqlite:|postgres(?:ql)?:\/\/)./is.test(text)) return text;
  const hint = 'Use sqlite:PATH or postgres://USER@HOST:PORT/DATABASE.';
  // InvalidArgumentError shows the text, which can contain a password.
  if (text.includes('@')) throw new UsageError(`The database address is not valid. ${hint}`);
  const isPath = text !== '' && !text.includes(':');
  throw new InvalidArgumentError(isPath ? `${hint} Did you mean sqlite:${text}?` : hint);
}

export function parseHost(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Use a host name or an IP address.');
  return text;
}

/** Returns a parser of a number. */
export function integer(min: number, max: number, what = 'an integer'): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Use ${what} from ${min} to ${max}.`);
  };
}

export function parseWorkers(text: string): number {
  return text === 'auto' ? availableParallelism() : countWorkers(text);
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

/** Origins as browsers send them, or `*` alone. */
export function parseOrigins(text: string): string[] {
  const origins = text.split(',').map((one) => one.trim());
  return origins.length === 1 && origins[0] === '*' ? origins : origins.map(parseOrigin);
}

function parseOrigin(text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:\/\/[^/\\?#@\s*]+\/?$/i.test(text)) {
    throw new InvalidArgumentError(
      'Use origins such as https://garden.example or http://localhost:5173, without a path, separated by commas; ' +
        'or * alone for all.',
    );
  }
  return url.origin; // browsers send it in this form: in lower case, without the default port
}

export function parseRateOrOff(text: string): Rate | 'off' {
  if (text === 'off') return text;
  const rate = parseRate(text);
  if (rate === undefined) {
    throw new InvalidArgumentError(
      `Use a number from 1 to ${maxRequests} followed by /s, /m or /h, such as 200/s; or off.`,
    );
  }
  return rate;
}

export function parseRedisUrl(text: string): string {
  if (/^rediss?:\/\/[^/]/i.test(text) && URL.canParse(text)) return text;
  // InvalidArgumentError would show the text, which can contain a password.
  throw new UsageError(
    'The address of Redis is not valid. Use redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS.',
  );
}

/** IP addresses and networks, such as 10.0.0.0/8. */
export function parseProxies(text: string): string[] {
  const proxies = text.split(',').map((one) => one.trim());
  for (const proxy of proxies) {
    const [address = '', prefix = '0', ...rest] = proxy.split('/');
    const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
    if (rest.length > 0 || !/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) {
      throw new InvalidArgumentError(
        'Use IP addresses and networks, such as 127.0.0.1 or 10.0.0.0/8, separated by commas.',
      );
    }
  }
  return proxies;
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
