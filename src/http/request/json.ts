/**
 * Parses JSON (RFC 8259) without loss. It reports as faults what JSON.parse accepts silently: bytes that are not
 * UTF-8, duplicate fields, and numbers whose decimal value changes when they are parsed.
 */
import { isUtf8 } from 'node:buffer';
import type { Faults } from '../../problem.ts';

/** Adds the faults of the JSON text; validation.ts checks the value. `example` is a valid body, which a fault shows. */
export function readJson(bytes: Buffer, example: unknown, faults: Faults): unknown {
  const text = bytes.toString('utf8');
  try {
    if (isUtf8(bytes)) {
      const value: unknown = JSON.parse(text);
      // If the value serializes to the same text, nothing was lost. This is the common case.
      const isLossless = !isObject(value) || JSON.stringify(value) === text;
      if (!isLossless) findLosses(text, faults);
      return value;
    }
  } catch {
    // Not well-formed. The parser's message quotes the body, so it is not returned.
  }
  const sample = JSON.stringify(example);
  faults.add(
    { pointer: '' },
    () => `The body is not valid JSON in UTF-8. Send an object like ${sample}.`,
  );
  return undefined;
}

/** The JSON Pointer to a member of the body (RFC 6901). */
export function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

const tokenPattern = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:]|[-\d][-+.\deE]*/g;

/** Finds members of the outermost object that JSON.parse loses or changes. `text` must be well-formed. */
function findLosses(text: string, faults: Faults): void {
  const seen = new Set<string>();
  let depth = 0;
  let latest = '';
  let name = '';
  for (const [token] of text.matchAll(tokenPattern)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (depth !== 1) continue;
    else if (token.startsWith('"')) latest = token;
    else if (token === ':') {
      name = JSON.parse(latest) as string; // the token is a quoted string
      if (seen.has(name))
        faults.add({ pointer: pointerTo(name) }, () => `"${name}" is repeated. Send it once.`);
      seen.add(name);
    } else if (!isLosslessNumber(token)) {
      faults.add(
        { pointer: pointerTo(name) },
        () =>
          `${truncate(token)} cannot be represented exactly. The largest integer that can is ${Number.MAX_SAFE_INTEGER}.`,
      );
    }
  }
}

/** Whether parsing preserves the decimal value of the number, in any notation. */
function isLosslessNumber(token: string): boolean {
  const value = String(Number(token));
  return value === token || normalizeDecimal(value) === normalizeDecimal(token);
}

/** The canonical form of a decimal: digits without leading or trailing zeros, and a power of ten. */
function normalizeDecimal(token: string): string {
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

export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function truncate(token: string): string {
  return token.length <= 40 ? token : `${token.slice(0, 40)}...`;
}
