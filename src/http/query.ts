/**
 * Reads the query of a URL as HTML forms write it (url.spec.whatwg.org, section 5.1), but strictly:
 * text that is not percent-encoded UTF-8 and a parameter that comes twice are faults. Only a list can come
 * in parts, `a=1&a=2`, which is the default style of most generated clients.
 */
import type { TObject, TSchema } from '@sinclair/typebox';
import type { Fault } from '../problem.ts';

export interface QueryReading {
  value: Record<string, unknown>;
  faults: Fault[];
}

/** Holds whatever names a query brings: it has none of its own, and V8 keeps it as fast as a literal. */
class Values {
  [name: string]: unknown;
}
Object.setPrototypeOf(Values.prototype, null);

export function readQuery(schema: TObject, url: string): QueryReading {
  const value = new Values();
  const faults: Fault[] = [];
  const query = queryOf(url);
  if (query === '') return { value, faults };
  const faulty = new Set<string>();
  const refuse = (parameter: string, detail: string) => {
    if (!faulty.has(parameter)) faults.push({ parameter, detail });
    faulty.add(parameter);
  };
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const [encodedName, encodedText] = splitOnce(pair, '=');
    const name = decode(encodedName);
    const text = decode(encodedText);
    if (name === undefined || text === undefined) {
      refuse(name ?? encodedName, `"${name ?? encodedName}" is not percent-encoded UTF-8.`);
    } else if (!Object.hasOwn(value, name)) {
      value[name] = readText(schema.properties[name], text);
    } else if (schema.properties[name]?.['type'] === 'array') {
      value[name] = [value[name], text.split(',')].flat();
    } else {
      refuse(name, `"${name}" is sent twice; send it once.`);
    }
  }
  return { value, faults };
}

/** The text after the first `?`, or none. */
export function queryOf(url: string): string {
  return splitOnce(url, '?')[1];
}

/**
 * The value that a parameter's text stands for. What cannot stand for the schema's type stays text,
 * for the schema to refuse: `1e3`, ` 5` and `007` are not integers here.
 */
export function readText(schema: TSchema | undefined, text: string): unknown {
  if (schema?.['type'] === 'integer') return /^(0|[1-9]\d{0,15})$/.test(text) ? exact(text) : text;
  if (schema?.['type'] === 'array') return text.split(',');
  return text;
}

function exact(digits: string): unknown {
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
