/**
 * Parses the query of a URL like that of an HTML form (url.spec.whatwg.org, section 5.1), but strictly: invalid
 * percent-encoding, invalid UTF-8 and duplicate parameters are faults. Only array parameters can repeat, as in
 * `a=1&a=2`, which is the default style of most generated clients.
 */
import type { TObject, TSchema } from '@sinclair/typebox';
import type { Fault } from '../problem.ts';

export interface QueryResult {
  value: Record<string, unknown>;
  faults: Fault[];
}

/** Without a prototype, so any parameter name is safe. V8 makes such an instance as fast as a literal. */
class QueryValues {
  [name: string]: unknown;
}
Object.setPrototypeOf(QueryValues.prototype, null);

export function readQuery(schema: TObject, url: string): QueryResult {
  const value = new QueryValues();
  const faults: Fault[] = [];
  const query = queryOf(url);
  if (query === '') return { value, faults };
  const reported = new Set<string>();
  const addFault = (parameter: string, detail: string) => {
    if (!reported.has(parameter)) faults.push({ parameter, detail });
    reported.add(parameter);
  };
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const [encodedName, encodedText] = splitOnce(pair, '=');
    const name = decode(encodedName);
    const text = decode(encodedText);
    if (name === undefined || text === undefined) {
      addFault(name ?? encodedName, `"${name ?? encodedName}" is not percent-encoded UTF-8.`);
    } else if (!Object.hasOwn(value, name)) {
      value[name] = parseParameter(schema.properties[name], text);
    } else if (schema.properties[name]?.['type'] === 'array') {
      value[name] = [value[name], text.split(',')].flat();
    } else {
      addFault(name, `"${name}" is sent twice; send it once.`);
    }
  }
  return { value, faults };
}

/** The text after the first `?`, or an empty string. */
export function queryOf(url: string): string {
  return splitOnce(url, '?')[1];
}

/**
 * Parses the text of a parameter by the type in its schema. Invalid text stays text, and validation refuses it:
 * `1e3`, ` 5` and `007` are not integers.
 */
export function parseParameter(schema: TSchema | undefined, text: string): unknown {
  if (schema?.['type'] === 'integer')
    return /^(0|[1-9]\d{0,15})$/.test(text) ? toSafeInteger(text) : text;
  if (schema?.['type'] === 'array') return text.split(',');
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
