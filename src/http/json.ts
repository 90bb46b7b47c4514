/**
 * Reads JSON (RFC 8259) without losing anything: what JSON.parse takes in silence (bytes that are
 * not UTF-8, a field that comes twice, a number that a double cannot carry) is told as a fault.
 */
import { isUtf8 } from 'node:buffer';
import type { Fault } from '../problem.ts';

export interface JsonReading {
  value: unknown;
  /** What is wrong with the text itself, not with what it says. */
  faults: Fault[];
}

export function readJson(bytes: Buffer): JsonReading {
  const text = bytes.toString('utf8');
  try {
    if (isUtf8(bytes)) {
      const value: unknown = JSON.parse(text);
      // A text that comes out again as it went in has lost nothing, and most clients write it so.
      const isWhole = !isObject(value) || JSON.stringify(value) === text;
      return { value, faults: isWhole ? [] : lossesOf(text) };
    }
  } catch {
    // Not well-formed. What the parser says quotes the body, so it stays here.
  }
  const detail =
    'The body is not well-formed JSON in UTF-8; send an object like {"name": "Monstera", "tag": "indoor"}.';
  return { value: undefined, faults: [{ pointer: '', detail }] };
}

/** RFC 6901: the pointer to a member of the body. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:]|[-\d][-+.\deE]*/g;

/** The losses among the members of the outermost object. `text` is known to be well-formed. */
function lossesOf(text: string): Fault[] {
  const faults: Fault[] = [];
  const seen = new Set<string>();
  const faulty = new Set<string>();
  const refuse = (member: string, detail: string) => {
    if (!faulty.has(member)) faults.push({ pointer: pointerTo(member), detail });
    faulty.add(member);
  };
  let depth = 0;
  let latest = '';
  let name = '';
  for (const [token] of text.matchAll(tokens)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (depth !== 1) continue;
    else if (token.startsWith('"')) latest = token;
    else if (token === ':') {
      name = JSON.parse(latest) as string; // a token between quotes
      if (seen.has(name)) refuse(name, `"${name}" is sent twice; send it once.`);
      seen.add(name);
    } else if (!isExact(token)) {
      const detail = `${shorten(token)} cannot be represented exactly; the largest integer that can is ${Number.MAX_SAFE_INTEGER}.`;
      refuse(name, detail);
    }
  }
  return faults;
}

/** True where the number reads back as the same decimal, whatever way it is written. */
function isExact(token: string): boolean {
  const value = String(Number(token));
  return value === token || decimal(value) === decimal(token);
}

/** A decimal in one form: digits without zeros at either end, and a power of ten. */
function decimal(token: string): string {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(token) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  let end = digits.length;
  while (digits[end - 1] === '0') end--; // a regular expression would take quadratic time here
  const significant = digits.slice(0, end);
  if (whole === '' || significant === '') return significant; // not finite, or zero
  const power = Number(exponent) - fraction.length + digits.length - significant.length;
  return `${significant}e${power}`;
}

function isObject(value: unknown): boolean {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function shorten(token: string): string {
  return token.length <= 40 ? token : `${token.slice(0, 40)}...`;
}
