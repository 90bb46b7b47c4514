/**
 * The operations on tokens, like those of operations.ts. None requires a scope.
 */
import { Type } from '../typebox.ts';
import { afterOf, limitOf, strict, tokenOperation } from './operations.ts';
import { json, response, responses } from './responses.ts';
import { NewToken, OwnToken, Token } from './token-schemas.ts';

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
  response: { 200: json('What the token grants.', Token), ...tokenOperation },
};

export const revokeOwnToken = {
  operationId: 'revokeOwnToken',
  summary: 'Revoke your token',
  description:
    'Revokes the token of the request. From the next request on, every process of the service refuses it with 401. It needs no scope.',
  tags,
  querystring,
  response: {
    204: response('The token of the request is revoked.', []),
    403: responses.InsufficientScope,
    ...tokenOperation,
  },
};

const created = json('The token is created.', OwnToken);
const location = {
  description: 'The address of the new token.',
  required: true,
  schema: { type: 'string', format: 'uri-reference' },
  example: '/tokens/000000001-22894e9580395e64',
};

export const createToken = {
  operationId: 'createToken',
  summary: 'Create a token',
  description:
    'Creates another token of the calling user, with at most the scopes and the lifetime of the token of the request. Without a body, it grants the same. The response shows it once. If the outcome is unknown, you can repeat the request: nobody knows the token that may have been created. It needs no scope.',
  tags,
  querystring,
  body: NewToken,
  response: {
    201: { ...created, headers: { ...created.headers, Location: location } },
    403: responses.InsufficientScope,
    409: responses.TooManyTokens,
    413: responses.BodyTooLarge,
    415: responses.UnsupportedMediaType,
    ...tokenOperation,
  },
};

export const listTokens = {
  operationId: 'listTokens',
  summary: 'List your tokens',
  description:
    'Returns the tokens of the calling user in ascending order of id: active, expired and revoked ones. If tokens follow a page with a `limit`, `Link` has the address of the next page. It needs no scope.',
  tags,
  querystring: Type.Object({ limit: limitOf('tokens'), after }, strict),
  response: { 200: json('The tokens.', Type.Array(OwnToken), ['Link']), ...tokenOperation },
};

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
  response: {
    204: response('The token is revoked.', []),
    403: responses.InsufficientScope,
    404: responses.TokenNotFound,
    ...tokenOperation,
  },
};
