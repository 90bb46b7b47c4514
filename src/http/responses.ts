/**
 * The responses of the operations, as openapi.json describes them. Each header, schema and problem is defined once,
 * under its name in `components`. The examples of problems are those of docs/errors.md.
 */
import type { TSchema } from '@sinclair/typebox';
import { maxId } from '../ids.ts';
import { NewPlant, PlantField } from '../plant.ts';
import { ShareAccess } from '../share.ts';
import type { ProblemKind } from '../problem.ts';
import { Type } from '../typebox.ts';
import { problemMediaType } from './problems.ts';
import { NewToken, OwnToken, Scope, Token } from './token-schemas.ts';

/**
 * A plant in a response. Its strings have no constraints here: a client that counts length in another way must not
 * reject what the service has stored.
 */
export const Plant = Type.Object(
  {
    name: Type.Optional(
      Type.String({ description: 'What the plant is called, exactly as it was sent.' }),
    ),
    tag: Type.Optional(Type.String({ description: 'Its tag; empty if it has none.' })),
    id: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxId,
        description: 'Its id, unique in the store. Present only if `fields` names it.',
      }),
    ),
  } satisfies Record<PlantField, TSchema>,
  {
    additionalProperties: false,
    description: 'A plant with the fields that `fields` names: `name` and `tag` by default.',
    examples: [{ id: 42, name: 'Monstera deliciosa', tag: 'indoor' }],
  },
);

const Fault = Type.Object(
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

const Problem = Type.Object(
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

export const Share = Type.Object(
  {
    user: Type.String({ description: 'The name of the other user.' }),
    access: ShareAccess,
  },
  {
    description: 'A share between the calling user and another one.',
    examples: [{ user: 'bob', access: 'read' }],
  },
);

export const Shares = Type.Object(
  {
    given: Type.Array(Share, {
      description: 'Users who can access the plants of the calling user.',
    }),
    received: Type.Array(Share, {
      description:
        'Users whose plants the calling user can access: those who shared first, at most 999.',
    }),
  },
  {
    description: 'The shares of the calling user.',
    examples: [{ given: [{ user: 'bob', access: 'read' }], received: [] }],
  },
);

export const Health = Type.Object(
  { status: Type.Unsafe<'ok'>({ type: 'string', enum: ['ok'], description: 'Always `ok`.' }) },
  {
    description: 'The response of a successful health check.',
    examples: [{ status: 'ok' }],
  },
);

export const schemas = {
  NewPlant,
  Plant,
  PlantField,
  Share,
  Shares,
  ShareAccess,
  Token,
  NewToken,
  OwnToken,
  Scope,
  Problem,
  Fault,
  Health,
};

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
  Location: header('The address of the new plant.', '/plants/42', {
    type: 'string',
    format: 'uri-reference',
  }),
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

const challengeUnlessFull = optional(
  header(
    'Names the scope that the token lacks (RFC 6750). Absent if a quota is used up.',
    'Bearer error="insufficient_scope", scope="plants:write"',
  ),
);

type HeaderName = keyof typeof headers;
type Headers = Partial<Record<HeaderName, object>>;

/** A response with these headers and with `X-Request-Id`, which every response has. */
function described(description: string, named: Headers, content?: object) {
  const all = { 'X-Request-Id': headers['X-Request-Id'], ...named };
  return { description, headers: all, ...(content && { content }) };
}

function pick(names: readonly HeaderName[]): Headers {
  return Object.fromEntries(names.map((name) => [name, headers[name]]));
}

/** The response to a successful request with a token. */
export function response(description: string, names: readonly HeaderName[], content?: object) {
  return described(description, pick([...names, 'RateLimit', 'RateLimit-Policy']), content);
}

export function json(description: string, schema: TSchema, names: readonly HeaderName[] = []) {
  return response(description, names, { 'application/json': { schema } });
}

/** The response to a successful health check, which needs no token. */
export function healthy(description: string) {
  return described(description, {}, { 'application/json': { schema: Health } });
}

/** A response that is a problem of one of these kinds. */
function problem(
  description: string,
  kinds: readonly ProblemKind[],
  names: readonly HeaderName[] = [],
  more: Headers = {},
) {
  const examples = kinds.map((kind) => [kind, { $ref: `#/components/examples/${kind}` }]);
  return described(
    description,
    { ...pick(names), ...more },
    { [problemMediaType]: { schema: Problem, examples: Object.fromEntries(examples) } },
  );
}

/**
 * Each problem by the name of its component. Successful responses are described in their operations:
 * some generators do not follow a reference to find their media type.
 */
export const responses = {
  InvalidRequest: problem(
    'The request is not valid: its HTTP, a parameter or its body. `errors` lists the faults.',
    ['invalid-request'],
  ),
  InvalidToken: problem(
    'There is no token, or it is mistyped, unknown, expired or revoked.',
    ['invalid-token'],
    ['WWW-Authenticate'],
  ),
  InsufficientScope: problem(
    'The token is valid, but does not have the scope that this operation requires.',
    ['insufficient-scope'],
    ['WWW-Authenticate'],
  ),
  CreateForbidden: problem(
    'The token does not have the scope that this operation requires. Or the calling user or the store has as many plants as the operator allows.',
    ['insufficient-scope', 'quota-exceeded'],
    [],
    { 'WWW-Authenticate': challengeUnlessFull },
  ),
  NotFound: problem(
    'The store has no such plant, or the calling user has no access to it; the response is the same. Or the path is wrong.',
    ['plant-not-found', 'path-not-found'],
  ),
  TokenNotFound: problem('The calling user has no token with this id. Or the path is wrong.', [
    'token-not-found',
    'path-not-found',
  ]),
  TooManyTokens: problem(
    'The calling user has as many active tokens as possible. Nothing was changed.',
    ['too-many-tokens'],
  ),
  RequestTimeout: problem('The request did not arrive in time. Send it again.', [
    'request-timeout',
  ]),
  IdConflict: problem('The store already has a plant with this id. Nothing was changed.', [
    'id-taken',
  ]),
  ShareNotFound: problem(
    'There is no share between the calling user and a user of this name. Or the path is wrong.',
    ['share-not-found', 'path-not-found'],
  ),
  TooManyShares: problem('The calling user shares with the maximum number of users already.', [
    'too-many-shares',
  ]),
  BodyTooLarge: problem('The body has more than 16 KiB.', ['body-too-large']),
  UnsupportedMediaType: problem(
    'The body is not sent as plain JSON in UTF-8.',
    ['unsupported-media-type'],
    ['Accept', 'Accept-Encoding'],
  ),
  ExpectationFailed: problem('The `Expect` header asks for something that is not supported.', [
    'expectation-failed',
  ]),
  RateLimited: problem(
    'Too many requests, or too many that had no valid token. Nothing was changed.',
    ['rate-limited'],
    ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  ),
  HeadersTooLarge: problem('The URL and the headers are too large.', ['headers-too-large']),
  InternalError: problem('A defect of the service. The log has its cause under the request id.', [
    'internal-error',
  ]),
  Unavailable: problem(
    'The service cannot take the request now. Nothing was changed, unless `type` ends with `outcome-unknown`.',
    [
      'overloaded',
      'storage-full',
      'storage-unavailable',
      'provider-unavailable',
      'outcome-unknown',
    ],
    ['Retry-After'],
  ),
  VersionNotSupported: problem('The version of HTTP is not supported.', ['version-not-supported']),
  NotReady: problem(
    'The service is stopping, or its storage does not respond. Send no requests here now.',
    ['overloaded', 'storage-unavailable'],
    ['Retry-After'],
  ),
};
