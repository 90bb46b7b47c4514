/**
 * The operations with which users manage their own tokens. None requires a scope. `GET /token` costs no query of its
 * own, because authentication has loaded the grant.
 */
import type { FastifyInstance } from 'fastify';
import { userKey, type Grant } from '../../access/access.ts';
import { Problem, type ProblemKind } from '../../problem.ts';
import { runInSlice } from '../../shared/time-slices.ts';
import { formatTimestamp } from '../../shared/timestamp.ts';
import { Type } from '../../shared/typebox.ts';
import { createTokenFor, grantedScopes, NewToken, refuseForeign, valueOf } from './new-token.ts';
import { afterOf, limitOf, operationsOf, strict, type RouteOptions } from './operation.ts';
import { sendJson } from '../response/send.ts';
import type { TypeBoxProvider } from '../request/validation.ts';

export const tokenProblems: readonly ProblemKind[] = [
  'insufficient-scope',
  'token-restricted',
  'too-many-tokens',
  'invitation-used',
  'idempotency-key-reused',
];

export const tokenOperations = operationsOf('tokens', {
  getToken: {
    summary: 'Get your token',
    description: 'Describes the token of the request: its user, store, role, scopes and expiry.',
    scopes: [],
    forInvitations: true,
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
      'Creates another token for the calling user, with at most the scopes and the lifetime of the token of the request. Without a body, it grants the same. With an invitation, it creates a token that takes its place. Only the response contains the token itself. With an `Idempotency-Key`, you can repeat the request as long as the new token is active: the response has the same one.',
    scopes: [],
    forInvitations: true,
    requestHeaders: ['Idempotency-Key'],
    body: NewToken,
    successes: {
      201: {
        description: 'The token is created.',
        schema: 'OwnToken',
        created: ['token', '/tokens/000000001-22894e9580395e64'],
        headers: ['Idempotent-Replayed'],
      },
    },
    problems: tokenProblems,
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

export type LastBackup = (() => Promise<Date | undefined>) | undefined;

export function tokenRoutes(
  app: FastifyInstance,
  { storage: { identity }, optionsOf, lists, baseUrl }: RouteOptions,
  lastBackup: LastBackup,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const { getToken, revokeOwnToken, createToken, listTokens, revokeToken } = tokenOperations;

  routes.get('/token', optionsOf(getToken), async ({ grant }, reply) => {
    const backup = grant.role === 'manager' ? await lastBackup?.() : undefined;
    return sendJson(reply, grantJson(grant, backup));
  });

  routes.delete('/token', optionsOf(revokeOwnToken), async ({ grant, id }, reply) => {
    refuseForeign(grant);
    await identity.revokeToken(grant.tokenId, Date.now(), grant, id);
    return reply.code(204).send();
  });

  routes.post('/tokens', optionsOf(createToken), async (request, reply) => {
    const created = await createTokenFor(identity, request, reply.code(201), request.body);
    reply.header('location', `${baseUrl}/tokens/${created.id}`);
    return sendJson(reply, JSON.stringify(created));
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

function grantJson(grant: Grant, lastBackup: Date | undefined): string {
  const { expiresAtMs, renewableUntilMs, invitation } = grant;
  return JSON.stringify({
    id: grant.tokenId,
    user: grant.userName,
    store: grant.storeName,
    role: grant.role,
    scopes: grantedScopes(grant),
    expiresAt: formatTimestamp(expiresAtMs),
    renewableUntil:
      renewableUntilMs === expiresAtMs && invitation === undefined
        ? undefined
        : formatTimestamp(renewableUntilMs),
    invitation: invitation && { uses: invitation.uses },
    lastBackup,
  });
}
