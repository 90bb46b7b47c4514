/**
 * What openapi.json says about a request and its response. It shares no code with the service.
 */
import { readFileSync } from 'node:fs';
import { Ajv2020, type AnySchemaObject } from 'ajv/dist/2020.js';
import { isChunked, isFramed, parse, sent, type Bytes, type Request } from './request.ts';
import { valuesOf, type Answer } from './wire.ts';

export type Schema = AnySchemaObject;

export interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema: Schema;
}

type Content = Record<string, { schema: Schema }>;

export interface Operation {
  operationId: string;
  method: string;
  /** The path, with the names of its parameters in braces. */
  template: string;
  description: string;
  security?: unknown[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<
    string,
    { headers?: Record<string, { required?: boolean }>; content?: Content }
  >;
}

/** An operation, and the values of the parameters in its path. */
export interface Match {
  operation: Operation;
  values: Record<string, Bytes>;
  query: Bytes;
}

/** Whether the service must accept a request as valid. Undefined if the document leaves it open. */
export type Verdict = boolean | undefined;

const file = new URL('../../../openapi.json', import.meta.url);
const document = JSON.parse(readFileSync(file, 'utf8'));
const ajv = new Ajv2020({ strict: false, validateFormats: false });

const targets = new Map<string, unknown>();

/** The value with what it refers to in place of each reference. No object has more members than the document names. */
function resolved(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(resolved);
  if (!('$ref' in value)) {
    const members = Object.entries(value).map(([key, one]) => [key, resolved(one)]);
    const closed = 'properties' in value ? { additionalProperties: false } : {};
    return { ...closed, ...Object.fromEntries(members) };
  }
  const pointer = String(value.$ref);
  const [, ...keys] = pointer.split('/');
  if (!targets.has(pointer))
    targets.set(pointer, resolved(keys.reduce((one, key) => one[key], document)));
  return targets.get(pointer);
}

const paths = resolved(document.paths) as Record<string, Record<string, Operation>>;
export const operations = Object.entries(paths).flatMap(([template, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    ...operation,
    parameters: operation.parameters ?? [],
    method: method.toUpperCase(),
    template,
  })),
);

const schemas = resolved(document.components.schemas) as Record<string, Schema>;

/** Whether a schema of the document, such as `Plant`, allows the value. */
export function isOf(name: string, value: unknown): boolean {
  return isValid(schemas[name], value);
}

function isValid(schema: Schema | undefined, value: unknown): boolean {
  return ajv.validate(schema ?? false, value) === true;
}

/** The raw path, also of an absolute address (RFC 9112, section 3.2.2). Empty if the target is broken. */
export function pathOf(target: Bytes): Bytes {
  const [, path = ''] =
    /^(?:https?:\/\/[^/?#]*)?(\/[!-"$->@-~]*)(?:\?[!-"$-~]*)?$/i.exec(target) ?? [];
  return path;
}

/** Undefined if the document has no such path, or not with this method. HEAD is like GET. */
export function operationOf({ method, target }: Request): Match | undefined {
  const [, query = ''] = /^[^?]*\??(.*)$/s.exec(target) ?? [];
  const segments = pathOf(target).split('/');
  for (const operation of operations) {
    if (operation.method !== (method === 'HEAD' ? 'GET' : method)) continue;
    const wanted = operation.template.split('/');
    const fits = (segment: string, at: number) =>
      segment === segments[at] || (segment.startsWith('{') && segments[at] !== '');
    if (segments.length !== wanted.length || !wanted.every(fits)) continue;
    const named = wanted.flatMap((segment, at) =>
      segment.startsWith('{') ? [[segment.slice(1, -1), segments[at] ?? '']] : [],
    );
    return { operation, values: Object.fromEntries(named), query };
  }
  return undefined;
}

/** The scopes of which the token must have one; empty if it needs none. */
export function scopesOf({ description }: Operation): string[] {
  const [sentence = ''] = /Requires the scope [^.]*\./.exec(description) ?? [];
  return Array.from(sentence.matchAll(/`([a-z:]+)`/g), ([, scope = '']) => scope);
}

export function judge(request: Request, match: Match): Verdict {
  const verdicts = [
    isPlain(request) ? true : undefined,
    ...judgeParameters(match),
    judgeBody(request, match.operation),
  ];
  if (verdicts.includes(false)) return false;
  return verdicts.includes(undefined) ? undefined : true;
}

const plainHeaders = /^(?:host|authorization|content-type|content-length|transfer-encoding)$/i;

/** Whether HTTP leaves open nothing about the request. */
function isPlain(request: Request): boolean {
  const { version, headers } = request;
  return (
    version === '1.1' &&
    sent(request, 'host').join() === 'x' &&
    headers.every(([name]) => plainHeaders.test(name)) &&
    isFramed(request) &&
    sent(request, 'content-type').length <= 1
  );
}

function judgeParameters({ operation, values, query }: Match): Verdict[] {
  const verdicts: Verdict[] = Object.entries(values).map(([name, text]) =>
    judgeValue(operation, name, [decode(text)]),
  );
  const texts = new Map<string, (string | undefined)[]>();
  for (const pair of query.split('&').filter(Boolean)) {
    const [name = '', ...value] = pair.replaceAll('+', ' ').split('=');
    const decoded = decode(name) ?? '';
    texts.set(decoded, [...(texts.get(decoded) ?? []), decode(value.join('='))]);
  }
  const isSorted = texts.has('sort') && operation.operationId === 'listPlants';
  if (isSorted && !texts.has('limit')) verdicts.push(false); // as the description of `sort` says
  const isMissing = ({ name, in: place, required }: Parameter) =>
    place === 'query' && required === true && !texts.has(name);
  if (operation.parameters.some(isMissing)) verdicts.push(false);
  if (texts.has('sort') && texts.has('after')) verdicts.push(undefined); // the cursor is of one order
  return [...verdicts, ...Array.from(texts, ([name, all]) => judgeValue(operation, name, all))];
}

/** Some servers resolve these segments (RFC 3986, section 6.2.2.3), and others keep them. */
const dots = new Set(['.', '..']);

/** A search needs a letter, cursors and times have a grammar, and nobody shares with themselves. */
const hasOwnRules = new Set(['q', 'after', 'since', 'user']);

function judgeValue(
  { parameters, security }: Operation,
  name: string,
  texts: readonly (string | undefined)[],
): Verdict {
  const parameter = parameters.find((one) => one.name === name && one.in !== 'header');
  if (security?.length === 0) return undefined; // health checks get whatever a balancer adds
  if (parameter === undefined || !texts.every((one) => one !== undefined)) return false;
  const { schema } = parameter;
  const [text = '', ...more] = texts;
  if (parameter.in === 'path' && dots.has(text)) return undefined;
  if (schema['type'] === 'array') {
    const all = texts.flatMap((one) => one.split(','));
    if (!isValid(schema, all)) return false;
    return more.length > 0 && all.length > texts.length ? undefined : true;
  }
  if (more.length > 0) return false;
  if (schema['type'] === 'boolean') return /^(?:true|false)$/.test(text);
  if (schema['type'] !== 'integer' && !('anyOf' in schema && /^\d+$/.test(text))) {
    if (isRefused(text) || !isValid(schema, text)) return false;
    return hasOwnRules.has(name) ? undefined : true;
  }
  const integer = /^(?:0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(integer) && isValid(schema, integer);
}

/** What the descriptions of texts name, because patterns for every language cannot. */
function isRefused(text: string): boolean {
  return /[\u0080-\u009f]/.test(text) || !text.isWellFormed();
}

/** Undefined if it is not percent-encoded UTF-8. */
export function decode(text: Bytes): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function judgeBody(request: Request, { requestBody }: Operation): Verdict {
  const { body } = request;
  if (requestBody === undefined)
    return body === '' ? (isChunked(request) ? undefined : true) : false;
  const [type = ''] = sent(request, 'content-type');
  if (body === '') return requestBody.required ? false : undefined;
  if (body.length > 16_384) return false;
  const value = parse(body);
  const texts = typeof value === 'object' && value !== null ? Object.values(value) : [];
  const [content] = Object.values(requestBody.content);
  if (value === undefined || !isValid(content?.schema, value)) return false;
  if (texts.some((text) => typeof text === 'string' && isRefused(text))) return false;
  // Repeated keys, other spellings of a number, times and URLs have rules that no schema has.
  const isCanonical = JSON.stringify(value) === Buffer.from(body, 'latin1').toString();
  return isCanonical &&
    type in requestBody.content &&
    !/expiresAt|renewableUntil|since|url/.test(body)
    ? true
    : undefined;
}

/** Refusals of requests that are broken, or that announce a body where there is none. */
const ofBroken = new Set([413, 415, 501]);
const ofInvalid = new Set([400, 405, 408, 413, 415, 417, 431]);

/** What is wrong with an answer of an operation. */
export function wrongsOfOperation(
  { method }: Request,
  { operation }: Match,
  answer: Answer,
  verdict: Verdict,
): string[] {
  const { status, body } = answer;
  const wrongs: string[] = [];
  if (verdict === false && status < 400) wrongs.push('the document refuses the request');
  if (verdict === true && ofInvalid.has(status)) wrongs.push('the document allows the request');
  const response = operation.responses[status];
  if (response === undefined) {
    return verdict !== true && ofBroken.has(status)
      ? wrongs
      : [...wrongs, `no ${status} in the document`];
  }
  for (const [name, { required }] of Object.entries(response.headers ?? {})) {
    const isMissing = valuesOf(answer, name.toLowerCase()).length === 0;
    if (required === true && isMissing) wrongs.push(`no header ${name}`);
  }
  if (response.content === undefined) return body === '' ? wrongs : [...wrongs, 'a body'];
  const [type = ''] = valuesOf(answer, 'content-type');
  const content = response.content[type];
  if (content === undefined) wrongs.push(`a body of ${type}`);
  else if (method !== 'HEAD' && !isValid(content.schema, parse(body)))
    wrongs.push('a body that the document does not describe');
  return wrongs;
}
