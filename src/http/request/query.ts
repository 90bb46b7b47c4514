/**
 * Parses the query of a URL like that of an HTML form (url.spec.whatwg.org, section 5.1), but strictly: invalid
 * percent-encoding, invalid UTF-8 and duplicate parameters are faults. Only array parameters can repeat, as in
 * `a=1&a=2`, which is the default style of most generated clients.
 */
import type { TObject, TSchema } from '@sinclair/typebox';
import type { Faults } from '../../problem.ts';
import { maxListMembers } from '../limits.ts';

/** Unknown parameters are faults, and are not in the result. */
export function readQuery(schema: TObject, url: string, faults: Faults): Record<string, unknown> {
  const value: Record<string, unknown> = {}; // only names of the schema
  const [, query] = splitOnce(url, '?');
  if (query === '') return value;
  const known = Object.keys(schema.properties);
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const likely = known.find((name) => pair.startsWith(name));
    const [encodedName, encodedText] = splitOnce(pair, '=');
    // The string of the schema is a faster key than an equal string from the URL.
    const name = encodedName === likely ? likely : decode(encodedName);
    const text = decode(encodedText);
    const parameter = name ?? encodedName;
    if (name === undefined || text === undefined) {
      faults.add({ parameter }, () => `"${parameter}" is not valid percent-encoded UTF-8.`);
    } else if (!Object.hasOwn(schema.properties, name)) {
      faults.add({ parameter }, () => `Unknown parameter "${name}". ${adviceFor(name, schema)}`);
    } else if (!Object.hasOwn(value, name)) {
      value[name] = parseParameter(schema.properties[name], text);
    } else if (schema.properties[name]?.['type'] === 'array') {
      value[name] = [value[name], parseParameter(schema.properties[name], text)].flat();
    } else {
      faults.add({ parameter }, () => `"${name}" is repeated. Send it once.`);
    }
  }
  return value;
}

function adviceFor(name: string, { properties }: TObject): string {
  const array = name.replace(/\[\]$/, '');
  const schema = Object.hasOwn(properties, array) ? properties[array] : undefined;
  if (schema?.['type'] !== 'array') return allowed(properties);
  const [first, second] = (schema['items'] as TSchema)['enum'] as string[]; // arrays have names of fields
  return `Write it as ${array}=${first}&${array}=${second}.`;
}

/** Names what can be used instead of an unknown field or parameter. */
export function allowed(properties: object): string {
  const known = Object.keys(properties);
  return known.length > 0 ? `Use only ${known.join(', ')}.` : 'This operation has none.';
}

/**
 * Parses the text of a parameter by the type in its schema. Invalid text stays text, and validation refuses it:
 * `1e3`, ` 5` and `007` are not integers.
 */
export function parseParameter(schema: TSchema | undefined, text: string): unknown {
  // A union is that of an integer and a text.
  if (schema?.['type'] === 'integer' || schema?.['anyOf'] !== undefined)
    return /^(0|[1-9]\d{0,15})$/.test(text) ? toSafeInteger(text) : text;
  if (schema?.['type'] === 'array') return text.split(',', maxListMembers + 1); // one of these is repeated
  if (schema?.['type'] === 'boolean' && /^(true|false)$/.test(text)) return text === 'true';
  return text;
}

function toSafeInteger(digits: string): unknown {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : digits;
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text: string): string | undefined {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
