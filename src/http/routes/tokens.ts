/**
 * The operations with which users manage their own tokens. None requires a scope. `GET /token` costs no query of its
 * own, because authentication has loaded the grant.
 */
import type { FastifyInstance } from 'fastify';
import type { Static } from '@sinclair/typebox';
import { scopes, stateOf, userKey, type Grant } from '../../access/access.ts';
import type { TokenRecord } from '../../access/identity-storage.ts';
import type { OwnToken } from '../../access/own-tokens.ts';
import { hashToken, makeToken, tokenId } from '../../access/token.ts';
import { Tag } from '../../plants/plant.ts';
import { insufficientScope, invalidRequest, Problem } from '../../problem.ts';
import { runInSlice } from '../../shared/time-slices.ts';
import { formatTimestamp, parseTimestamp } from '../../shared/timestamp.ts';
import { Type } from '../../shared/typebox.ts';
import { afterOf, limitOf, operationsOf, strict, type RouteOptions } from './operation.ts';
import { sendJson } from '../response/send.ts';
import type { TypeBoxProvider } from '../request/validation.ts';

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

export const tokenOperations = operationsOf('tokens', {
  getToken: {
    summary: 'Get your token',
    description: 'Describes the token of the request: its user, store, role, scopes and expiry.',
    scopes: [],
    successes: { 200: { description: 'What the token grants.', schema: 'Token' } },
  },
  revokeOwnToken: {
    summary: 'Revoke your token',
    description:
      'Revokes the token of the request. From the next request on, every process of the service refuses it with 401.',
    scopes: [],
    successes: { 204: { description: 'The token of the request is revoked.' } },
    problems: ['token-restricted'],
  },
  createToken: {
    summary: 'Create a token',
    description:
      'Creates another token for the calling user, with at most the scopes and the lifetime of the token of the request. Without a body, it grants the same. Only this response contains the token itself. If the outcome is unknown, you can repeat the request, because nobody has the token that may have been created.',
    scopes: [],
    body: NewToken,
    successes: {
      201: {
        description: 'The token is created.',
        schema: 'OwnToken',
        created: ['token', '/tokens/000000001-22894e9580395e64'],
      },
    },
    problems: ['insufficient-scope', 'token-restricted', 'too-many-tokens'],
  },
  listTokens: {
    summary: 'List your tokens',
    description:
      'Returns all tokens of the calling user in ascending order of id, including expired and revoked ones. If more tokens follow a page with a `limit`, `Link` has the address of the next page.',
    scopes: [],
    querystring: strict({
      limit: limitOf('tokens'),
      after: afterOf(
        'tokens with ids',
        Type.String({ format: 'token-id', description: 'the id of a token' }),
      ),
    }),
    successes: { 200: { description: 'The tokens.', items: 'OwnToken', headers: ['Link'] } },
  },
  revokeToken: {
    summary: 'Revoke a token',
    description:
      'Revokes a token of the calling user. From the next request on, every process of the service refuses it. If you repeat the request, the response is the same. A token that was created with another token can revoke itself and its descendants. Any other token can revoke tokens that have at most its scopes.',
    scopes: [],
    params: strict({
      tokenId: Type.String({
        description: 'The public id of the token.',
        examples: ['000000001-22894e9580395e64'],
      }),
    }),
    successes: { 204: { description: 'The token is revoked.' } },
    problems: ['insufficient-scope', 'token-restricted', 'token-not-found'],
  },
});

export function tokenRoutes(
  app: FastifyInstance,
  { storage: { identity }, optionsOf, lists, baseUrl }: RouteOptions,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const { getToken, revokeOwnToken, createToken, listTokens, revokeToken } = tokenOperations;

  routes.get('/token', optionsOf(getToken), async ({ grant }, reply) =>
    sendJson(reply, grantJson(grant)),
  );

  routes.delete('/token', optionsOf(revokeOwnToken), async ({ grant, id }, reply) => {
    refuseForeign(grant);
    await identity.revokeToken(grant.tokenId, Date.now(), grant, id);
    return reply.code(204).send();
  });

  routes.post('/tokens', optionsOf(createToken), async (request, reply) => {
    const { grant, body } = request;
    refuseForeign(grant);
    const { store } = grant.caller;
    const token = makeToken(store);
    const own = ownTokenOf(body, grant, hashToken(token));
    await identity.createOwnToken(grant, own, request.id);
    const id = tokenId(own.hash, store);
    const unused = { revokedAtMs: undefined, lastUsedAtMs: undefined };
    const shown = { ...valueOf({ ...own, id, ...unused }, grant), token };
    reply.code(201).header('location', `${baseUrl}/tokens/${id}`);
    return sendJson(reply, JSON.stringify(shown));
  });

  routes.get('/tokens', optionsOf(listTokens), async (request, reply) => {
    const { query, grant } = request;
    const { store, user } = grant.caller;
    return lists.send(request, reply, {
      query,
      maxBatchItems: 50,
      read: async ({ after, limit }) => {
        const wanted = { store, user, after, limit: limit + 1 };
        const found = await runInSlice(userKey(wanted), () => identity.listTokens(wanted));
        const tokens = found.slice(0, limit);
        const items = tokens.map((token) => JSON.stringify(valueOf(token, grant)));
        return {
          arrays: [items.join()],
          next: found.length > limit ? tokens.at(-1)?.id : undefined,
        };
      },
    });
  });

  routes.delete('/tokens/:tokenId', optionsOf(revokeToken), async (request, reply) => {
    const { grant, params, id } = request;
    const revoked = await identity.revokeToken(params.tokenId, Date.now(), grant, id);
    // The same for a token of another user.
    if (revoked === undefined) {
      const detail = 'You have no token with this id. "GET /tokens" lists your tokens.';
      throw new Problem('token-not-found', detail);
    }
    return reply.code(204).send();
  });
}

function grantJson({ tokenId: id, userName, storeName, role, caller, expiresAtMs }: Grant): string {
  return JSON.stringify({
    id,
    user: userName,
    store: storeName,
    role,
    scopes: [...caller.scopes],
    expiresAt: formatTimestamp(expiresAtMs),
  });
}

/**
 * Refuses a token of an identity provider. The service cannot revoke it, and a token of the service would outlast the
 * role that the provider has given.
 */
function refuseForeign({ isStored }: Grant): void {
  if (isStored) return;
  throw new Problem(
    'token-restricted',
    'This token is from your identity provider, so it cannot create tokens and cannot be revoked here.',
  );
}

/** The token to create. Throws a Problem if it would grant more than the one of the request. */
function ownTokenOf(
  { scopes: named, expiresAt, label = '' }: Static<typeof NewToken>,
  { caller, expiresAtMs: latestMs }: Grant,
  hash: Uint8Array,
): OwnToken {
  const createdAtMs = Date.now();
  const wanted = new Set(named ?? caller.scopes);
  const missing = [...wanted.difference(caller.scopes)].join(' ');
  if (missing !== '') {
    const granted = [...caller.scopes].join(' ');
    const detail = `Your token has only ${granted}, so a new token cannot have ${missing}.`;
    throw insufficientScope(missing, detail);
  }
  const expiresAtMs = expiresAt === undefined ? latestMs : parseTimestamp(expiresAt);
  if (expiresAtMs !== undefined && expiresAtMs <= createdAtMs) {
    throw refuseExpiry('"expiresAt" is in the past. Send a later time.');
  }
  if (latestMs !== undefined && (expiresAtMs ?? Infinity) > latestMs) {
    const latest = formatTimestamp(latestMs);
    throw refuseExpiry(
      `"expiresAt" is after your own token expires. Send ${latest} or an earlier time.`,
    );
  }
  const inOrder = scopes.filter((scope) => wanted.has(scope));
  return { hash, scopes: inOrder, label, createdAtMs, expiresAtMs };
}

function refuseExpiry(detail: string) {
  return invalidRequest([{ pointer: '/expiresAt', detail }]);
}

/** A token as responses show it. Times that do not apply are absent. */
function valueOf(
  token: Omit<TokenRecord, 'store' | 'user' | 'role'>,
  { tokenId: currentId }: Grant,
): object {
  const { id } = token;
  return {
    id,
    label: token.label,
    scopes: token.scopes,
    state: stateOf(token, Date.now()),
    current: id === currentId,
    createdAt: formatTimestamp(token.createdAtMs),
    expiresAt: formatTimestamp(token.expiresAtMs),
    revokedAt: formatTimestamp(token.revokedAtMs),
    lastUsedAt: formatTimestamp(token.lastUsedAtMs),
  };
}
