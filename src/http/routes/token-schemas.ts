/**
 * The operations on tokens: their parameters and bodies. None requires a scope.
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
            'What the token allows: at most the scopes of the token of the request, which are the default.',
          examples: [['plants:read']],
        }),
      ),
      expiresAt: Type.Optional(
        Type.String({
          format: 'date-time',
          description: 'a time with an offset from UTC, as in RFC 3339',
          meaning:
            'When the token expires: not later than the token of the request, whose expiry is the default.',
          examples: ['2027-01-31T12:00:00Z'],
        }),
      ),
      label: Type.Optional({
        ...Tag,
        meaning: 'A note of your own to tell tokens apart.',
        examples: ['phone'],
      }),
    },
    {
      additionalProperties: false,
      description: 'a JSON object with the fields scopes, expiresAt and label',
      meaning: 'A token to create. Without a body, it grants the same as the one of the request.',
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
    'Returns what the token of the request grants, to whom and until when. Any valid token is enough: it needs no scope.',
  tags,
  querystring,
} satisfies Operation;

export const revokeOwnToken = {
  operationId: 'revokeOwnToken',
  summary: 'Revoke your token',
  description:
    'Revokes the token of the request. From the next request on, every process of the service refuses it with 401. It needs no scope.',
  tags,
  querystring,
} satisfies Operation;

export const createToken = {
  operationId: 'createToken',
  summary: 'Create a token',
  description:
    'Creates another token of the calling user, with at most the scopes and the lifetime of the token of the request. Without a body, it grants the same. The response shows it once. If the outcome is unknown, you can repeat the request: nobody knows the token that may have been created. It needs no scope.',
  tags,
  querystring,
  body: NewToken,
} satisfies Operation;

export const listTokens = {
  operationId: 'listTokens',
  summary: 'List your tokens',
  description:
    'Returns the tokens of the calling user in ascending order of id: active, expired and revoked ones. If tokens follow a page with a `limit`, `Link` has the address of the next page. It needs no scope.',
  tags,
  querystring: Type.Object({ limit: limitOf('tokens'), after }, strict),
} satisfies Operation;

export const revokeToken = {
  operationId: 'revokeToken',
  summary: 'Revoke a token',
  description:
    'Revokes a token of the calling user. From the next request on, every process of the service refuses it. If you repeat the request, the response is the same. A token that was created with another one can revoke itself and those that descend from it; any other token can revoke those with at most its scopes.',
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
} satisfies Operation;
