/**
 * What the options of the commands have in common: each is also a variable, and says what is wrong.
 */
import { availableParallelism } from 'node:os';
import type { TString } from '@sinclair/typebox';
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { scopes, type Scope } from '../access.ts';
import { UsageError } from '../refusal.ts';

/** More than any machine pays back. */
const workersMax = 256;

/** An option that can also be set as PLANT_STORE_<NAME>. */
export function flag<const Flags extends string>(flags: Flags, description: string): Option<Flags> {
  const option = new Option(flags, description);
  return option.env(`PLANT_STORE_${option.name().toUpperCase().replaceAll('-', '_')}`);
}

/** The address of a storage. */
export function databaseUrl(text: string): string {
  if (/^(?:sqlite:|postgres(?:ql)?:\/\/)./is.test(text)) return text;
  const mend = 'Give it as sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE.';
  // The other error shows the text, which may hold a password.
  if (text.includes('@')) throw new UsageError(`The address of the database is not valid. ${mend}`);
  throw new InvalidArgumentError(mend);
}

export function host(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Give a name or an address.');
  return text;
}

export function port(text: string): number {
  return integer(text, 0, 65_535);
}

export function workers(text: string): number {
  return text === 'auto'
    ? availableParallelism()
    : integer(text, 1, workersMax, 'auto or an integer');
}

function integer(text: string, min: number, max: number, what = 'an integer'): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) {
    throw new InvalidArgumentError(`Give ${what} from ${min} to ${max}.`);
  }
  return value;
}

/** A public address without a slash at its end. */
export function baseUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol) || /[?#@\s]/.test(text)) {
    throw new InvalidArgumentError(
      'Give an http or https address without query, such as https://plants.example/api.',
    );
  }
  return url.href.replace(/\/+$/, '');
}

/** Milliseconds of a duration such as 90d. */
export function durationMs(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) {
    throw new InvalidArgumentError('Give a number with s, m, h or d, such as 12h or 90d.');
  }
  const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  return Number(count) * (unitMs[unit] ?? Number.NaN);
}

export function scopeList(text: string): Scope[] {
  const wanted = new Set(text.split(',').map((one) => one.trim()));
  const known = scopes.filter((scope) => wanted.has(scope));
  if (known.length !== wanted.size) {
    throw new InvalidArgumentError(
      `Give one or more of ${scopes.join(', ')}, with commas between.`,
    );
  }
  return known;
}

/** Text that the schema of a name or a tag lets through. */
export function textOf(schema: TString): (text: string) => string {
  const { minLength = 0, maxLength = Infinity, pattern = '' } = schema;
  const characters = new RegExp(pattern, 'u');
  return (text) => {
    const codePoints = Array.from(text).length;
    if (codePoints < minLength || codePoints > maxLength || !characters.test(text)) {
      throw new InvalidArgumentError(`Give ${schema.description}.`);
    }
    return text;
  };
}
