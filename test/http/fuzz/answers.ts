/**
 * The rules for every response, whatever the request: from docs/reference/api.md, RFC 9110, RFC 9457 and
 * RFC 6750, without code of the service.
 */
import { isOf } from './document.ts';
import { parse, type Bytes } from './request.ts';
import { valuesOf, type Answer } from './wire.ts';

/** The inside of the service, which no answer may show. */
const inside =
  /node_modules|\.[jt]s:\d+|\n {4}at |SQLITE|sqlite|postgres|\bSELECT\b|\bINSERT INTO\b|\/(?:tmp|root|home|usr)\/|plant_[0-9A-Za-z]{8}/;

const challenges: Record<number, RegExp> = {
  401: /^Bearer(?: error="invalid_token"(?:, error_description="[^"\\]+")?)?$/,
  403: /^Bearer error="insufficient_scope"(?:, scope="(?:plants|shares|webhooks|users):(?:read|write)(?: (?:plants|shares|webhooks|users):(?:read|write))*")?$/,
};

export interface Asked {
  method: string;
  /** Text that this caller must never be shown. */
  secrets?: readonly string[];
  /** The requests so far without their credentials, if they can have tokens anywhere else. */
  sent?: Bytes;
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
  const requestId = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
  must(requestId.test(one('x-request-id')), 'no id of the request');
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

  // The one response that shows a token.
  const made = status === 201 ? body.replace(/"token":"plant_\w{58}"/, '') : body;
  // Names of users and plants can look like tokens.
  const shown = made.replace(/plant_\w+/g, (text) => (sent.includes(text) ? '' : text));
  const all = `${answer.headers.flat().join('\n')}\n${shown}`;
  must(!inside.test(method === 'GET' && isDocument(answer) ? '' : all), 'shows the inside');
  for (const secret of secrets) must(!all.includes(secret), `shows ${secret}`);

  if (status === 204)
    must(body === '' && valuesOf(answer, 'content-type').length === 0, 'content of a 204');
  else if (status >= 400 && !isNotFoundPage(answer)) {
    must(one('content-type') === 'application/problem+json', 'not a problem');
    must(method === 'HEAD' || isProblem(parse(body), status), 'a problem that is not described');
  }
  return wrongs;
}

/** The reference page and the document behind it quote what other answers must not. */
function isDocument(answer: Answer): boolean {
  return /<!doctype html>|^\{"openapi":|SwaggerUI/.test(answer.body.slice(0, 100_000));
}

/** The response to an unknown path if a browser asks. A request can do so at random. */
function isNotFoundPage(answer: Answer): boolean {
  const [mediaType] = valuesOf(answer, 'content-type');
  return answer.status === 404 && mediaType === 'text/html; charset=utf-8';
}

/** As the document describes it, and each detail a sentence. */
function isProblem(value: unknown, status: number): boolean {
  if (!isOf('Problem', value)) return false;
  const problem = value as { type: string; title: string; status: number; detail: string } & {
    errors?: { detail: string; pointer?: string; parameter?: string }[];
  }; // as the schema says
  const isFault = ({
    pointer,
    parameter,
    detail,
  }: {
    pointer?: string;
    parameter?: string;
    detail: string;
  }) =>
    (pointer === undefined) !== (parameter === undefined) &&
    /^(?:\/(?:[^/~]|~[01])*)*$/su.test(pointer ?? '') &&
    isSentence(detail);
  const { type, title, detail, errors } = problem;
  return (
    /^\/problems\/[a-z-]+$/.test(type) &&
    problem.status === status &&
    /\S/.test(title) &&
    isSentence(detail) &&
    (errors === undefined || (status === 400 && errors.length > 0 && errors.every(isFault)))
  );
}

function isSentence(text: string): boolean {
  return text.length < 20_000 && /[.?]$/.test(text);
}
