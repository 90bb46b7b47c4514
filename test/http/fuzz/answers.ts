/**
 * The rules for every response, whatever the request: from docs/reference/api.md, RFC 9110, RFC 9457 and
 * RFC 6750, without code of the service.
 */
import { valuesOf, type Answer } from './wire.ts';

/** Each kind of problem and its status. Other 5xx are not listed: no request may cause one. */
const statusOfKind: Record<string, number> = {
  'invalid-request': 400,
  'invalid-token': 401,
  'insufficient-scope': 403,
  'token-restricted': 403,
  'plant-read-only': 403,
  'quota-exceeded': 403,
  'plant-not-found': 404,
  'path-not-found': 404,
  'share-not-found': 404,
  'token-not-found': 404,
  'method-not-allowed': 405,
  'request-timeout': 408,
  'id-taken': 409,
  'precondition-failed': 412,
  'body-too-large': 413,
  'unsupported-media-type': 415,
  'expectation-failed': 417,
  'headers-too-large': 431,
  'method-not-implemented': 501,
  'version-not-supported': 505,
};

/** The inside of the service, which no answer may show. */
const inside =
  /node_modules|\.[jt]s:\d+|\n {4}at |SQLITE|sqlite|postgres|\bSELECT\b|\bINSERT INTO\b|\/(?:tmp|root|home|usr)\/|plant_[0-9A-Za-z]{8}/;

const challenges: Record<number, RegExp> = {
  401: /^Bearer(?: error="invalid_token"(?:, error_description="[^"\\]+")?)?$/,
  403: /^Bearer error="insufficient_scope"(?:, scope="(?:plants|shares):(?:read|write)(?: (?:plants|shares):(?:read|write))*")?$/,
};

export interface Asked {
  method: string;
  /** Text that this caller must never be shown. */
  secrets?: readonly string[];
  /** The requests so far without their credentials, if they can have tokens anywhere else. */
  sent?: string;
}

/** What is wrong with an answer; nothing for a good one. */
export function wrongsOf(answer: Answer, { method, secrets = [], sent = '' }: Asked): string[] {
  const { status, body } = answer;
  const wrongs: string[] = [];
  const must = (isSo: boolean, otherwise: string) => void (isSo || wrongs.push(otherwise));
  const one = (name: string) => {
    const values = valuesOf(answer, name);
    must(values.length === 1, `${values.length} headers ${name}`);
    return values[0] ?? '';
  };

  must(status >= 200 && (status < 500 || status === 501 || status === 505), `status ${status}`);
  must(
    /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(one('x-request-id')),
    'no id of the request',
  );
  // RFC 9110, section 6.6.1: every answer below 500 of a server that has a clock.
  must(!Number.isNaN(Date.parse(one('date'))), 'no date');
  // No scope helps against the others.
  const lacks = status === 401 || (status === 403 && !/\/problems\/(?!insufficient)/.test(body));
  must(
    lacks === valuesOf(answer, 'www-authenticate').length > 0,
    'a challenge belongs to 401 and insufficient-scope',
  );
  const challenge = lacks ? challenges[status] : undefined;
  if (challenge)
    must(challenge.test(one('www-authenticate')), 'a challenge that RFC 6750 does not know');
  if (status === 405) must(/^[A-Z]+(?:, [A-Z]+)*$/.test(one('allow')), 'no list of methods');
  if (status === 503 || status === 429)
    must(/^\d+$/.test(one('retry-after')), 'no time to retry after');

  // The one response that shows a token.
  const made = status === 201 ? body.replace(/"token":"plant_\w{58}"/, '') : body;
  // Names of users and plants can look like tokens.
  const shown = made.replace(/plant_\w+/g, (text) => (sent.includes(text) ? '' : text));
  const all = `${answer.headers.flat().join('\n')}\n${shown}`;
  must(!inside.test(method === 'GET' && isDocument(answer) ? '' : all), 'shows the inside');
  for (const secret of secrets) must(!all.includes(secret), `shows ${secret}`);

  if (status === 204)
    must(body === '' && valuesOf(answer, 'content-type').length === 0, 'content of a 204');
  else if (status >= 400 && !isNotFoundPage(answer))
    wrongs.push(...wrongsOfProblem(answer, one('content-type'), method));
  return wrongs;
}

/** The reference page and the document behind it quote what other answers must not. */
function isDocument(answer: Answer): boolean {
  return /<!doctype html>|^\{"openapi":|SwaggerUI/.test(answer.body.slice(0, 100_000));
}

/** The response to an unknown path if a browser asks. A request can do so at random. */
export function isNotFoundPage(answer: Answer): boolean {
  const [mediaType] = valuesOf(answer, 'content-type');
  return answer.status === 404 && mediaType === 'text/html; charset=utf-8';
}

function wrongsOfProblem({ status, body }: Answer, mediaType: string, method: string): string[] {
  if (mediaType !== 'application/problem+json') return [`a problem as ${mediaType}`];
  if (method === 'HEAD') return [];
  const problem = problemOf(body);
  if (problem === undefined) return ['a problem that is not a JSON object in UTF-8'];
  const wrongs: string[] = [];
  const { type, title, detail, errors, status: said, ...others } = problem;
  const kind = String(type).replace(/^\/problems\//, '');
  if (kind === type) wrongs.push(`type ${JSON.stringify(type)}`);
  if (statusOfKind[kind] !== status || said !== status) wrongs.push(`${kind} with ${status}`);
  if (!isSentence(title, /\S/)) wrongs.push('no title');
  if (!isSentence(detail, /[.?]$/)) wrongs.push('no detail');
  if (Object.keys(others).length > 0) wrongs.push(`members ${Object.keys(others).join()}`);
  if (errors !== undefined) {
    const isList = Array.isArray(errors) && errors.length > 0 && status === 400;
    if (!isList || !errors.every(isFault)) wrongs.push('errors that are no list of faults');
  }
  return wrongs;
}

function isFault(fault: unknown): boolean {
  if (typeof fault !== 'object' || fault === null) return false;
  const { detail, pointer, parameter, ...others } = fault as Record<string, unknown>; // an object
  if (Object.keys(others).length > 0 || !isSentence(detail, /[.?]$/)) return false;
  if (pointer === undefined) return typeof parameter === 'string';
  return parameter === undefined && isSentence(pointer, /^(?:\/(?:[^/~]|~[01])*)*$/su);
}

function isSentence(text: unknown, form: RegExp): boolean {
  return typeof text === 'string' && text.length < 20_000 && form.test(text);
}

/** Undefined if the bytes are not a JSON object in UTF-8. */
export function problemOf(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(Buffer.from(body, 'latin1')));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined; // as was just asked
  } catch {
    return undefined;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
