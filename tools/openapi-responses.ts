/**
 * The responses of the operations, as openapi.json describes them. Each header, schema and problem is defined once,
 * under its name in `components`. The table of problems.ts and docs/errors.md describe problems.
 */
import type { Operation, Success } from '../src/http/routes/operation.ts';
import type { ProblemKind } from '../src/problem.ts';
import { Type } from '../src/shared/typebox.ts';
import { problemMediaType, problemResponses } from '../src/http/response/problems.ts';

export const Fault = Type.Object(
  {
    pointer: Type.Optional(
      Type.String({
        description:
          'The place in the body, as a JSON Pointer (RFC 6901); empty for the whole body.',
        examples: ['/name'],
      }),
    ),
    parameter: Type.Optional(
      Type.String({
        description: 'The name of the query or path parameter.',
        examples: ['limit'],
      }),
    ),
    detail: Type.String({ description: 'What is wrong there and how to fix it.' }),
  },
  {
    description: 'One thing that is wrong with the input: in the body or in a parameter.',
    examples: [{ pointer: '/name', detail: '"name" is missing.' }],
  },
);

export const Problem = Type.Object(
  {
    type: Type.String({
      format: 'uri-reference',
      description:
        'The address of a page about this kind of problem. Its last segment is a stable name: write code against it.',
      examples: ['/problems/invalid-request'],
    }),
    title: Type.String({ description: 'The kind of problem in a few words, for people.' }),
    status: Type.Integer({
      minimum: 400,
      maximum: 599,
      description: 'The status code of the response.',
    }),
    detail: Type.String({
      description: 'What went wrong this time and how to fix it, for people.',
    }),
    errors: Type.Optional(
      Type.Array(Fault, {
        description: 'The faults of invalid input, up to 20; `detail` counts them all.',
      }),
    ),
  },
  { description: 'Why a request failed (RFC 9457).' },
);

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
    'Identifies this request in the log of the service. Give it to the operator when you report a problem.',
    exampleRequestId,
  ),
  Link: optional(
    header(
      'The address of the next page (RFC 8288), with all other parameters unchanged. Absent if there was no `limit` or no plant follows.',
      '</plants?limit=100&after=42&tag=indoor&fields=id&fields=name&fields=tag>; rel="next"',
    ),
  ),
  Accept: header('The media type that a body must have.', 'application/json'),
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
      'What the limit still allows: `r` requests now, and more in `t` seconds. If the rate of requests is limited, every response to a request with a valid token has it.',
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

/** The responses of an operation, by status. */
export function responsesOf({ successes, problems, security, body }: Operation): object {
  const all = [...problems, ...problemsOfAll];
  if (security === undefined) all.push(...problemsWithToken);
  if (body !== undefined) all.push('body-too-large', 'unsupported-media-type');
  if (problems.some((kind) => problemResponses[kind].status === 404)) all.push('path-not-found');
  const byStatus = Map.groupBy(all, (kind) => problemResponses[kind].status);
  const hasToken = security === undefined;
  return Object.fromEntries([
    ...Object.entries(successes).map(([status, one]) => [status, successResponse(one, hasToken)]),
    ...byStatus.entries().map(([status, kinds]) => [status, problemResponse(status, kinds)]),
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

function successResponse(
  { description, schema, created, isPage = false }: Success,
  hasToken: boolean,
): object {
  const { RateLimit, 'RateLimit-Policy': policy, Link } = headers;
  const ofToken = hasToken && { RateLimit, 'RateLimit-Policy': policy };
  const named = { ...(created && location(...created)), ...(isPage && { Link }), ...ofToken };
  return {
    ...response(description, named),
    ...(schema && { content: { 'application/json': { schema } } }),
  };
}

/** A response with these headers and with `X-Request-Id`, which every response has. */
function response(description: string, named: Record<string, object>) {
  return { description, headers: { 'X-Request-Id': headers['X-Request-Id'], ...named } };
}

function location(what: string, example: string) {
  const schema = { type: 'string', format: 'uri-reference' };
  return { Location: header(`The address of the new ${what}.`, example, schema) };
}

/** The responses to problems by the names of their components: one for all problems of an operation with one status. */
export const problemComponents: Record<string, object> = {};

function problemResponse(status: number, kinds: readonly ProblemKind[]): object {
  const names = kinds.map((kind) =>
    kind.replaceAll(/(?:^|-)./g, (at) => (at.at(-1) ?? '').toUpperCase()),
  );
  const component = kinds.length <= 2 ? names.join('Or') : `Problem${status}`;
  const [title = '', ...others] = kinds.map((kind) => problemResponses[kind].title);
  const lower = others.map((other) => `, or ${other.charAt(0).toLowerCase()}${other.slice(1)}`);
  const examples = kinds.map((kind) => [kind, { $ref: `#/components/examples/${kind}` }]);
  return (problemComponents[component] ??= {
    ...response(`${title}${lower.join('')}.`, headersOf(kinds)),
    content: {
      [problemMediaType]: { schema: Problem, examples: Object.fromEntries(examples) },
    },
  });
}

/** The headers of responses to these problems. Those that only some of them have are optional. */
function headersOf(kinds: readonly ProblemKind[]): Record<string, object> {
  const namesOf = (kind: ProblemKind) =>
    kind === 'rate-limited' // request-limits.ts sets them
      ? ['Retry-After', 'RateLimit', 'RateLimit-Policy']
      : Object.keys(problemResponses[kind].headers);
  const named = Object.entries(headers).flatMap(([name, one]) => {
    const without = kinds.filter((kind) => !namesOf(kind).includes(name));
    if (without.length === 0) return [[name, one]];
    const description = `${one.description} Absent for \`${without.join('`, `')}\`.`;
    return without.length === kinds.length ? [] : [[name, optional({ ...one, description })]];
  });
  return Object.fromEntries(named);
}
