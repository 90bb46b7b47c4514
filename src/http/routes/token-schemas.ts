/**
 * The operations on tokens: their parameters, bodies and responses. None requires a scope.
 */
import { scopes } from '../../access/access.ts';
import { Tag } from '../../plants/plant.ts';
import { Type } from '../../shared/typebox.ts';
import { afterOf, limitOf, strict, type Operation } from './operation.ts';

export const Scope = Type.Unsafe<(typeof scopes)[number]>({
  type: 'string',
  enum: scopes,
  description: 'One kind of operation.',
});

/** The body of a request for another token. */
export const NewToken = Type.Optional(
  Type.Object(
    {
      scopes: Type.Optional(
        Type.Array(Scope, {
          uniqueItems: true,
          minItems: 1,
          description: `a list of at least one of ${scopes.join(', ')}, each at most once`,
          meaning:
            'What the token allows. The default, and the maximum, are the scopes of the token of the request.',
          examples: [['plants:read']],
        }),
      ),
      expiresAt: Type.Optional(
        Type.String({
          format: 'date-time',
          description: 'a time with an offset from UTC, as in RFC 3339',
          meaning:
            'When the token expires. The default, and the latest time, is the expiry of the token of the request.',
          examples: ['2027-01-31T12:00:00Z'],
        }),
      ),
      label: Type.Optional({
        ...Tag,
        meaning: 'A note that helps you to distinguish your tokens.',
        examples: ['phone'],
      }),
    },
    {
      additionalProperties: false,
      description: 'a JSON object with the fields scopes, expiresAt and label',
      meaning:
        'The token to create. Without a body, it grants the same as the token of the request.',
      examples: [{ scopes: ['plants:read'], label: 'phone' }],
    },
  ),
);

const tags = ['tokens'];
const querystring = Type.Object({}, strict);
const after = afterOf(
  'tokens with ids',
  Type.String({ format: 'token-id', description: 'the id of a token' }),
);

export const getToken = {
  operationId: 'getToken',
  summary: 'Get your token',
  description:
    'Describes the token of the request: its user, store, role, scopes and expiry. Requires no scope.',
  tags,
  querystring,
  successes: { 200: { description: 'What the token grants.', schema: 'Token' } },
  problems: [],
} satisfies Operation;

export const revokeOwnToken = {
  operationId: 'revokeOwnToken',
  summary: 'Revoke your token',
  description:
    'Revokes the token of the request. From the next request on, every process of the service refuses it with 401. Requires no scope.',
  tags,
  querystring,
  successes: { 204: { description: 'The token of the request is revoked.' } },
  problems: ['token-restricted'],
} satisfies Operation;

export const createToken = {
  operationId: 'createToken',
  summary: 'Create a token',
  description:
    'Creates another token for the calling user, with at most the scopes and the lifetime of the token of the request. Without a body, it grants the same. Only this response contains the token itself. If the outcome is unknown, you can repeat the request, because nobody has the token that may have been created. Requires no scope.',
  tags,
  querystring,
  body: NewToken,
  successes: {
    201: {
      description: 'The token is created.',
      schema: 'OwnToken',
      created: ['token', '/tokens/000000001-22894e9580395e64'],
    },
  },
  problems: ['insufficient-scope', 'token-restricted', 'too-many-tokens'],
} satisfies Operation;

export const listTokens = {
  operationId: 'listTokens',
  summary: 'List your tokens',
  description:
    'Returns all tokens of the calling user in ascending order of id, including expired and revoked ones. If more tokens follow a page with a `limit`, `Link` has the address of the next page. Requires no scope.',
  tags,
  querystring: Type.Object({ limit: limitOf('tokens'), after }, strict),
  successes: { 200: { description: 'The tokens.', items: 'OwnToken', headers: ['Link'] } },
  problems: [],
} satisfies Operation;

export const revokeToken = {
  operationId: 'revokeToken',
  summary: 'Revoke a token',
  description:
    'Revokes a token of the calling user. From the next request on, every process of the service refuses it. If you repeat the request, the response is the same. A token that was created with another token can revoke itself and its descendants. Any other token can revoke tokens that have at most its scopes.',
  tags,
  params: Type.Object(
    {
      tokenId: Type.String({
        description: 'The public id of the token.',
        examples: ['000000001-22894e9580395e64'],
      }),
    },
    strict,
  ),
  querystring,
  successes: { 204: { description: 'The token is revoked.' } },
  problems: ['insufficient-scope', 'token-restricted', 'token-not-found'],
} satisfies Operation;
