/**
 * Describes the responses that the routes declare, and headers of requests, for openapi.json. Each header, schema and
 * problem is defined once, under its name in `components`. problem.ts and docs/reference/errors.md describe problems.
 */
import type { TSchema } from '@sinclair/typebox';
import type { Operation, Success } from '../src/http/routes/operation.ts';
import { maxPosition } from '../src/log/change-log.ts';
import { maxId } from '../src/plants/ids.ts';
import { problemKinds, type ProblemKind } from '../src/problem.ts';
import { Type } from '../src/shared/typebox.ts';
import { acceptPatch } from '../src/http/request/body.ts';
import { keyPattern, maxKeyFieldChars } from '../src/http/request/idempotency-key.ts';
import { problemHeaders, problemMediaType } from '../src/http/response/problems.ts';
import { schemas } from './openapi-schemas.ts';

function header(description: string, example: unknown, schema: object = { type: 'string' }) {
  return { description, required: true, schema, example };
}

function optional(required: ReturnType<typeof header>) {
  return { ...required, required: false };
}

/** A limit of one request in an hour. */
const maxRetrySeconds = 3_600;

export const exampleRequestId = '1f0e4b6c-6a0b-4a3e-9d5e-0c1f6f2b7a90';

export const headers = {
  'X-Request-Id': header(
    'Identifies this request in the log of the service. Include it when you report a problem.',
    exampleRequestId,
  ),
  Link: optional(
    header(
      'The address of the next page (RFC 8288), with all other parameters unchanged. Absent if there was no `limit` or no plant follows.',
      '</plants?limit=100&after=42&tag=indoor&fields=id&fields=name&fields=tag>; rel="next"',
    ),
  ),
  'Total-Count': optional(
    header(
      'The number of plants that the list has without `limit` and `after`. Absent unless `count` is `true`.',
      5012,
      { type: 'integer', format: 'int64', minimum: 0, maximum: maxId },
    ),
  ),
  Vary: optional(
    header(
      'If the service allows web pages of other origins (CORS), every response has `Origin`.',
      'Origin',
    ),
  ),
  ETag: optional(
    header(
      'The entity tag of the plant, which changes with its name, its tag or its owner. Send it in `If-Match` or `If-None-Match`. Absent if the token lacks `plants:read`.',
      '"nv6mXYvkkymPjn9S1aUzZO"',
    ),
  ),
  'Change-Position': header(
    'The position of the change in the log. A copy that has followed `/changes` up to this number has the change.',
    4821,
    { type: 'integer', format: 'int64', minimum: 0, maximum: maxPosition },
  ),
  'Idempotent-Replayed': optional(
    header(
      '`true` if this is the response of an earlier request with the same `Idempotency-Key`, which created the plant. Absent otherwise.',
      'true',
    ),
  ),
  Accept: header('The media type that a body must have.', 'application/json'),
  'Accept-Patch': header(
    'The media types that the body of a `PATCH` can have (RFC 5789).',
    acceptPatch,
  ),
  'Accept-Encoding': header('The content coding that a body must have: none.', 'identity'),
  'WWW-Authenticate': header(
    'Why the token was refused (RFC 6750): `Bearer` alone if none was sent.',
    'Bearer error="insufficient_scope", scope="plants:write"',
  ),
  'Retry-After': header('How many seconds to wait before you try again.', 1, {
    type: 'integer',
    minimum: 1,
    maximum: maxRetrySeconds,
  }),
  RateLimit: optional(
    header(
      'What the limit still allows: `r` requests now, and more in `t` seconds. If the rate of requests is limited, every response to a request that counts has it.',
      '"token";r=0;t=1',
    ),
  ),
  'RateLimit-Policy': optional(
    header(
      'The limit: `q` requests in `w` seconds, or at the same time. Accompanies `RateLimit`.',
      '"token";q=200;w=1',
    ),
  ),
};

function requestHeader(name: string, description: string, bounds: object = {}) {
  const schema = { type: 'string', ...bounds };
  return { name, in: 'header', required: false, description, schema };
}

/** Those of conditional requests (RFC 9110, section 13), and that of repeatable ones. */
export const requestHeaders = {
  'If-Match': requestHeader(
    'If-Match',
    'Entity tags, separated by commas, or `*` for any. Unless the plant has one of them, the response is 412. A weak tag (`W/"..."`) never matches.',
  ),
  'Idempotency-Key': requestHeader(
    'Idempotency-Key',
    'Makes the request repeatable: for 24 hours, a request with the same key and the same plant gets the response of the first one, and creates nothing. 1 to 255 printable ASCII characters in quotation marks, such as a UUID: a new one for each plant.',
    { minLength: 1, maxLength: maxKeyFieldChars, pattern: keyPattern },
  ),
  'If-None-Match': requestHeader(
    'If-None-Match',
    'Entity tags, separated by commas, or `*` for any. If the plant has one of them, `GET` gets 304 without the plant, and a change gets 412.',
  ),
};

/** The responses of an operation, by status. */
export function responsesOf(
  { successes, problems: own = [], scopes, body }: Operation,
  method: string,
): object {
  const hasToken = scopes !== undefined;
  const problems = scopes?.length ? ['insufficient-scope' as const, ...own] : own;
  const all = [...problems, ...problemsOfAll];
  if (hasToken) all.push(...problemsWithToken);
  if (body !== undefined) all.push('body-too-large', 'unsupported-media-type');
  if (problems.some((kind) => problemKinds[kind].status === 404)) all.push('path-not-found');
  const byStatus = [...Map.groupBy(all, (kind) => problemKinds[kind].status)];
  const isPatch = method === 'PATCH';
  return Object.fromEntries([
    ...Object.entries(successes).map(([status, one]) => [status, successResponse(one, hasToken)]),
    ...byStatus.map(([status, kinds]) => [status, problemResponse(status, kinds, isPatch)]),
  ]);
}

const problemsOfAll: readonly ProblemKind[] = [
  'invalid-request',
  'request-timeout',
  'expectation-failed',
  'headers-too-large',
  'internal-error',
  'version-not-supported',
];

const problemsWithToken: readonly ProblemKind[] = [
  'invalid-token',
  'rate-limited',
  'overloaded',
  'storage-full',
  'storage-unavailable',
  'provider-unavailable',
  'outcome-unknown',
];

function successResponse(success: Success, hasToken: boolean): object {
  const { description, schema = success.items, created, headers: named = [] } = success;
  const limits = hasToken ? (['RateLimit', 'RateLimit-Policy'] as const) : [];
  const content = schema === undefined ? undefined : schemaOf(schema);
  return {
    ...response(description, {
      ...(created && location(...created)),
      ...Object.fromEntries([...named, ...limits].map((name) => [name, headers[name]])),
    }),
    ...(content && {
      content: { 'application/json': { schema: success.items ? Type.Array(content) : content } },
    }),
  };
}

function schemaOf(name: string): TSchema {
  const schema = schemas[name];
  if (schema === undefined) throw new Error(`There is no schema ${name} in openapi-schemas.ts.`);
  return schema;
}

/** A response with these headers, and those of every response. */
function response(description: string, named: Record<string, object>) {
  const { 'X-Request-Id': requestId, Vary } = headers;
  return { description, headers: { 'X-Request-Id': requestId, Vary, ...named } };
}

function location(what: string, example: string) {
  const schema = { type: 'string', format: 'uri-reference' };
  return { Location: header(`The address of the new ${what}.`, example, schema) };
}

/** The responses to problems by the names of their components: one for all problems of an operation with one status. */
export const problemComponents: Record<string, object> = {};

function problemResponse(status: number, kinds: readonly ProblemKind[], isPatch: boolean): object {
  const names = kinds.map((kind) =>
    kind.replaceAll(/(?:^|-)./g, (at) => (at.at(-1) ?? '').toUpperCase()),
  );
  const ofPatch = isPatch && status === 415; // body.ts names the media types of a patch
  const component = ofPatch
    ? 'UnsupportedPatch'
    : kinds.length <= 2
      ? names.join('Or')
      : `Problem${status}`;
  const [title = '', ...others] = kinds.map((kind) => problemKinds[kind].title);
  const lower = others.map((other) => `, or ${other.charAt(0).toLowerCase()}${other.slice(1)}`);
  const examples = kinds.map((kind) => [kind, { $ref: `#/components/examples/${kind}` }]);
  return (problemComponents[component] ??= {
    ...response(`${title}${lower.join('')}${ofPatch ? ', for a patch' : ''}.`, {
      ...headersOf(kinds),
      ...(ofPatch && { 'Accept-Patch': headers['Accept-Patch'] }),
    }),
    content: {
      [problemMediaType]: { schema: schemas['Problem'], examples: Object.fromEntries(examples) },
    },
  });
}

/** Problems of requests whose token was not checked, or is not valid. */
const beforeLimits: readonly ProblemKind[] = [
  'invalid-token',
  'path-not-found',
  'request-timeout',
  'expectation-failed',
  'headers-too-large',
  'provider-unavailable',
  'version-not-supported',
];

/** The headers of responses to these problems. Those that only some of them have are optional. */
function headersOf(kinds: readonly ProblemKind[]): Record<string, object> {
  const namesOf = (kind: ProblemKind) => [
    ...Object.keys(problemHeaders[kind] ?? {}),
    ...(kind === 'rate-limited' ? ['Retry-After'] : []), // request-limits.ts sets it
    ...(beforeLimits.includes(kind) ? [] : ['RateLimit', 'RateLimit-Policy']),
  ];
  const named = Object.entries(headers).flatMap(([name, one]) => {
    const without = kinds.filter((kind) => !namesOf(kind).includes(name));
    if (without.length === kinds.length) return [];
    if (without.length === 0 || !one.required) return [[name, one]];
    const description = `${one.description} Absent for \`${without.join('`, `')}\`.`;
    return [[name, optional({ ...one, description })]];
  });
  return Object.fromEntries(named);
}
