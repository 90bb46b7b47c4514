/**
 * The operations on tokens. None requires a scope.
 */
import { roles, scopes, type GrantState, type Role } from '../../access/access.ts';
import { Tag } from '../../plants/plant.ts';
import { publish, Type } from '../../shared/typebox.ts';
import { afterOf, limitOf, strict, type Operation } from './operation.ts';

export const Scope = Type.Unsafe<(typeof scopes)[number]>({
  type: 'string',
  enum: scopes,
  description: 'One kind of operation.',
});

const TokenRole = Type.Unsafe<Role>({
  type: 'string',
  enum: roles,
  description:
    'The role of the user: a `member` can access their own plants and those shared with them, a `manager` every plant in the store.',
});

const Time = (description: string) => Type.String({ format: 'date-time', description });

export const Token = Type.Object(
  {
    id: Type.String({
      description: 'The public id of the token, as `plant-store token list` shows it.',
    }),
    user: Type.String({ description: 'The name of the calling user.' }),
    store: Type.String({ description: 'The name of the store that the user belongs to.' }),
    role: TokenRole,
    scopes: Type.Array(Scope, { description: 'The operations that the token allows.' }),
    expiresAt: Type.Optional(Time('When the token expires (RFC 3339). Absent if it never does.')),
  },
  {
    description:
      'What a token grants, to whom and until when. Ignore members that you do not know.',
    examples: [
      {
        id: '000000001-22894e9580395e64',
        user: 'alice',
        store: 'main',
        role: 'member',
        scopes: ['plants:read', 'plants:write'],
        expiresAt: '2027-01-31T12:00:00.000Z',
      },
    ],
  },
);

/** The body of a request for another token. */
export const NewToken = Type.Optional(
  publish(
    Type.Object(
      {
        scopes: Type.Optional(
          publish(
            Type.Array(Scope, {
              uniqueItems: true,
              minItems: 1,
              description: `a list of at least one of ${scopes.join(', ')}, each at most once`,
              examples: [['plants:read']],
            }),
            {
              meaning:
                'What the token allows: at most the scopes of the token of the request, which are the default.',
            },
          ),
        ),
        expiresAt: Type.Optional(
          publish(
            Type.String({
              format: 'date-time',
              description: 'a time with an offset from UTC, as in RFC 3339',
              examples: ['2027-01-31T12:00:00Z'],
            }),
            {
              meaning:
                'When the token expires: not later than the token of the request, whose expiry is the default.',
            },
          ),
        ),
        label: Type.Optional(
          publish(
            { ...Tag, examples: ['phone'] },
            { meaning: 'A note of your own to tell tokens apart.' },
          ),
        ),
      },
      {
        additionalProperties: false,
        description: 'a JSON object with the fields scopes, expiresAt and label',
        examples: [{ scopes: ['plants:read'], label: 'phone' }],
      },
    ),
    { meaning: 'A token to create. Without a body, it grants the same as the one of the request.' },
  ),
);

export const OwnToken = Type.Object(
  {
    id: Type.String({ description: 'Its public id, which does not grant access.' }),
    label: Type.String({ description: 'Its note; empty if there is none.' }),
    scopes: Type.Array(Scope, { description: 'What it allows.' }),
    state: Type.Unsafe<GrantState>({
      type: 'string',
      enum: ['active', 'expired', 'revoked'],
      description: 'Whether the service accepts it.',
    }),
    current: Type.Boolean({ description: 'Whether it is the token of this request.' }),
    createdAt: Time('When it was created (RFC 3339).'),
    expiresAt: Type.Optional(Time('When it expires. Absent if it never does.')),
    revokedAt: Type.Optional(Time('When it was revoked. Absent if it was not.')),
    lastUsedAt: Type.Optional(
      Time('When it was last used, to the minute. Absent if it was not used yet.'),
    ),
    token: Type.Optional(
      Type.String({ description: 'The token itself. Present only when it is created: save it.' }),
    ),
  },
  {
    description: 'A token of the calling user. Ignore members that you do not know.',
    examples: [
      {
        id: '000000001-22894e9580395e64',
        label: 'phone',
        scopes: ['plants:read'],
        state: 'active',
        current: false,
        createdAt: '2026-01-31T12:00:00.000Z',
        lastUsedAt: '2026-02-01T09:30:00.000Z',
      },
    ],
  },
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
  successes: { 200: { description: 'What the token grants.', schema: Token } },
  problems: [],
} satisfies Operation;

export const revokeOwnToken = {
  operationId: 'revokeOwnToken',
  summary: 'Revoke your token',
  description:
    'Revokes the token of the request. From the next request on, every process of the service refuses it with 401. It needs no scope.',
  tags,
  querystring,
  successes: { 204: { description: 'The token of the request is revoked.' } },
  problems: ['insufficient-scope'],
} satisfies Operation;

export const createToken = {
  operationId: 'createToken',
  summary: 'Create a token',
  description:
    'Creates another token of the calling user, with at most the scopes and the lifetime of the token of the request. Without a body, it grants the same. The response shows it once. If the outcome is unknown, you can repeat the request: nobody knows the token that may have been created. It needs no scope.',
  tags,
  querystring,
  body: NewToken,
  successes: {
    201: {
      description: 'The token is created.',
      schema: OwnToken,
      created: ['token', '/tokens/000000001-22894e9580395e64'],
    },
  },
  problems: ['insufficient-scope', 'too-many-tokens'],
} satisfies Operation;

export const listTokens = {
  operationId: 'listTokens',
  summary: 'List your tokens',
  description:
    'Returns the tokens of the calling user in ascending order of id: active, expired and revoked ones. If tokens follow a page with a `limit`, `Link` has the address of the next page. It needs no scope.',
  tags,
  querystring: Type.Object({ limit: limitOf('tokens'), after }, strict),
  successes: { 200: { description: 'The tokens.', schema: Type.Array(OwnToken), isPage: true } },
  problems: [],
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
  successes: { 204: { description: 'The token is revoked.' } },
  problems: ['insufficient-scope', 'token-not-found'],
} satisfies Operation;
