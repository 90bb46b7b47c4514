/**
 * The oracle: what openapi.json says about a request and its response. It shares no code with the service.
 */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isChunked, isFramed, sent, type Bytes, type Request } from './request.ts';
import { valuesOf, type Answer } from './wire.ts';

interface Schema {
  type?: string;
}

interface Parameter {
  name: string;
  in: string;
  schema: Schema;
}

interface Operation {
  description: string;
  security?: unknown[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Record<string, unknown> };
  responses: Record<string, Response>;
  /** Its place in the document, as a JSON pointer. */
  pointer: string;
}

interface Response {
  headers?: Record<string, { required?: boolean }>;
  content?: Record<string, unknown>;
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
ajv.addSchema({ ...document, $id: 'openapi' });

const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

function isValid(pointer: string, value: unknown): boolean {
  const validate = ajv.getSchema(`openapi#${encodeURI(pointer)}`);
  if (validate === undefined) throw new Error(`no schema at ${pointer}`);
  return validate(value) === true;
}

function resolve<T extends object>(one: T | { $ref: string }): T {
  if (!('$ref' in one)) return one;
  const [, ...keys] = one.$ref.split('/');
  return keys.reduce((value, key) => value[key], document);
}

const templates = Object.entries<Record<string, Operation>>(document.paths).map(
  ([template, methods]) => ({
    segments: template.split('/'),
    operations: new Map(
      Object.entries(methods).map(([method, operation]) => [
        method.toUpperCase(),
        {
          ...operation,
          parameters: (operation.parameters ?? []).map(resolve),
          pointer: `/paths/${escaped(template)}/${method}`,
        },
      ]),
    ),
  }),
);

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
  for (const { segments: wanted, operations } of templates) {
    const fits = (segment: string, at: number) =>
      segment === segments[at] || (segment.startsWith('{') && segments[at] !== '');
    if (segments.length !== wanted.length || !wanted.every(fits)) continue;
    const operation = operations.get(method === 'HEAD' ? 'GET' : method);
    const named = wanted.flatMap((segment, at) =>
      segment.startsWith('{') ? [[segment.slice(1, -1), segments[at] ?? '']] : [],
    );
    return operation && { operation, values: Object.fromEntries(named), query };
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
  const { version, headers, trailer = '', extension = '' } = request;
  return (
    version === '1.1' &&
    sent(request, 'host').join() === 'x' &&
    headers.every(([name]) => plainHeaders.test(name)) &&
    isFramed(request) &&
    sent(request, 'content-type').length <= 1 &&
    trailer + extension === ''
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
  return [...verdicts, ...Array.from(texts, ([name, all]) => judgeValue(operation, name, all))];
}

/** Some servers resolve these segments (RFC 3986, section 6.2.2.3), and others keep them. */
const dots = new Set(['.', '..']);

/** A search needs a letter, a cursor has a grammar, and nobody shares with themselves. */
const hasOwnRules = new Set(['q', 'after', 'user']);

function judgeValue(
  { parameters, pointer, security }: Operation,
  name: string,
  texts: readonly (string | undefined)[],
): Verdict {
  const at = parameters.findIndex((one) => one.name === name && one.in !== 'header');
  const parameter = parameters[at];
  if (security?.length === 0) return undefined; // health checks get whatever a balancer adds
  if (parameter === undefined || !texts.every((one) => one !== undefined)) return false;
  const [text = '', ...more] = texts;
  if (parameter.in === 'path' && dots.has(text)) return undefined;
  const schema = `${schemaPointerOf(pointer, at)}/schema`;
  if (parameter.schema.type === 'array') {
    const all = texts.flatMap((one) => one.split(','));
    if (!isValid(schema, all)) return false;
    return more.length > 0 && all.length > texts.length ? undefined : true;
  }
  if (more.length > 0) return false;
  if (parameter.schema.type !== 'integer') {
    if (isRefused(text) || !isValid(schema, text)) return false;
    return hasOwnRules.has(name) ? undefined : true;
  }
  const integer = /^(?:0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(integer) && isValid(schema, integer);
}

function schemaPointerOf(pointer: string, at: number): string {
  const [, ...keys] = pointer.split('/').map((key) => key.replaceAll('~1', '/'));
  const operation = keys.reduce((value, key) => value[key], document);
  const { $ref } = operation.parameters[at];
  return $ref === undefined ? `${pointer}/parameters/${at}` : $ref.slice(1);
}

/** What the descriptions of texts name, because patterns for every language cannot. */
function isRefused(text: string): boolean {
  return /[\u0080-\u009f]/.test(text) || !text.isWellFormed();
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined if it is not percent-encoded UTF-8. */
export function decode(text: Bytes): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function judgeBody(request: Request, { requestBody, pointer }: Operation): Verdict {
  const { body } = request;
  if (requestBody === undefined)
    return body === '' ? (isChunked(request) ? undefined : true) : false;
  const [type = ''] = sent(request, 'content-type');
  if (body === '') return requestBody.required ? false : undefined;
  if (body.length > 16_384) return false;
  const value = parse(body);
  const texts = typeof value === 'object' && value !== null ? Object.values(value) : [];
  const schema = `${pointer}/requestBody/content/${escaped(Object.keys(requestBody.content)[0] ?? '')}/schema`;
  if (value === undefined || !isValid(schema, value)) return false;
  if (texts.some((text) => typeof text === 'string' && isRefused(text))) return false;
  // Repeated keys, other spellings of a number, and times are rules that no schema has.
  const isCanonical = JSON.stringify(value) === Buffer.from(body, 'latin1').toString();
  return isCanonical && type in requestBody.content && !body.includes('expiresAt')
    ? true
    : undefined;
}

function parse(body: Bytes): unknown {
  try {
    return JSON.parse(utf8.decode(Buffer.from(body, 'latin1')));
  } catch {
    return undefined;
  }
}

/** Whether the listed text is a plant that a client could have created. */
export function isPlant(value: unknown): boolean {
  return isValid('/components/schemas/NewPlant', value);
}

/** Refusals of requests that are broken, or that announce a body where there is none. */
const ofBroken = new Set([413, 415, 501]);

/** What is wrong with an answer of an operation. */
export function wrongsOfOperation(
  { method }: Request,
  { operation }: Match,
  { status, headers, body }: Answer,
  verdict: Verdict,
): string[] {
  const wrongs: string[] = [];
  const isDone = status < 400;
  if (verdict === false && isDone) wrongs.push(`${status}, but the document refuses the request`);
  if (verdict === true && [400, 405, 408, 413, 415, 417, 431].includes(status))
    wrongs.push(`${status}, but the document allows the request`);
  const reference = operation.responses[status];
  if (reference === undefined) {
    return verdict !== true && ofBroken.has(status)
      ? wrongs
      : [...wrongs, `no ${status} in the document`];
  }
  const response = resolve(reference);
  for (const [name, header] of Object.entries(response.headers ?? {})) {
    const isMissing = valuesOf({ headers }, name.toLowerCase()).length === 0;
    if (resolve(header).required === true && isMissing) wrongs.push(`no header ${name}`);
  }
  const [mediaType, ...others] = Object.keys(response.content ?? {});
  if (mediaType === undefined) return body === '' ? wrongs : [...wrongs, 'a body'];
  const [sentType = ''] = valuesOf({ headers }, 'content-type');
  if (![mediaType, ...others].includes(sentType)) wrongs.push(`a body of ${sentType}`);
  if (method === 'HEAD') return wrongs;
  const at =
    '$ref' in reference
      ? String(reference.$ref).slice(1)
      : `${operation.pointer}/responses/${status}`;
  if (!isValid(`${at}/content/${escaped(mediaType)}/schema`, parse(body)))
    wrongs.push('a body that the document does not describe');
  return wrongs;
}
