/**
 * The routes with which users manage their own tokens. `GET /token` costs no query of its own, because
 * authentication has loaded the grant.
 */
import type { FastifyInstance } from 'fastify';
import type { Static } from '@sinclair/typebox';
import {
  scopes as allScopes,
  stateOf,
  userKey,
  type Grant,
  type Scope,
} from '../../access/access.ts';
import type { TokenPosition, TokenRecord } from '../../access/identity-storage.ts';
import type { OwnToken } from '../../access/own-tokens.ts';
import { insufficientScope, invalidRequest, Problem, tokenNotFound } from '../../problem.ts';
import { formatTimestamp, parseTimestamp } from '../../shared/timestamp.ts';
import { hashToken, makeToken, rangeOf, tokenId } from '../../access/token.ts';
import { runInSlice } from '../../shared/time-slices.ts';
import { sendList, type Range } from '../response/send-list.ts';
import type { RouteOptions } from './operation.ts';
import { sendJson } from '../response/send.ts';
import {
  createToken,
  getToken,
  listTokens,
  revokeOwnToken,
  revokeToken,
  type NewToken,
} from './token-schemas.ts';
import type { TypeBoxProvider } from '../request/validation.ts';

export function tokenRoutes(
  app: FastifyInstance,
  { storage, authentication, ...lists }: RouteOptions,
): void {
  const { baseUrl } = lists;
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const options = { onRequest: authentication.requireToken() };

  routes.get('/token', { ...options, schema: getToken }, async ({ grant }, reply) =>
    sendJson(reply, grantJson(grant)),
  );

  routes.delete('/token', { ...options, schema: revokeOwnToken }, async ({ grant, id }, reply) => {
    refuseForeign(grant);
    await storage.identity.revokeToken(grant.tokenId, Date.now(), grant, id);
    return reply.code(204).send();
  });

  routes.post('/tokens', { ...options, schema: createToken }, async (request, reply) => {
    const { grant, body } = request;
    refuseForeign(grant);
    const { store } = grant.caller;
    const token = makeToken(store);
    const own = ownTokenOf(body, grant, hashToken(token));
    await storage.identity.createOwnToken(grant, own, request.id);
    const id = tokenId(own.hash, store);
    const unused = { revokedAtMs: undefined, lastUsedAtMs: undefined };
    const shown = { ...valueOf({ ...own, id, ...unused }, grant), token };
    reply.code(201).header('location', `${baseUrl}/tokens/${id}`);
    return sendJson(reply, JSON.stringify(shown));
  });

  routes.get('/tokens', { ...options, schema: listTokens }, async (request, reply) => {
    const { query, grant } = request;
    const list = {
      path: '/tokens',
      query,
      after: query.after ?? '',
      maxBatchItems: 50,
      frame: ['[', ']'] as const,
      read: async ({ after, limit }: Range<string>) => {
        const wanted = { owner: grant.caller, after: positionOf(after, grant), limit: limit + 1 };
        const found = await runInSlice(userKey(grant.caller), () =>
          storage.identity.listTokens(wanted),
        );
        const tokens = found.slice(0, limit);
        const items = tokens.map((token) => JSON.stringify(valueOf(token, grant)));
        const next = found.length > limit ? tokens.at(-1)?.id : undefined;
        return { arrays: [items.join()], next };
      },
    };
    return sendList(request, reply, list, lists);
  });

  routes.delete(
    '/tokens/:tokenId',
    { ...options, schema: revokeToken },
    async ({ grant, params, id }, reply) => {
      const { identity } = storage;
      const revoked = await identity.revokeToken(params.tokenId, Date.now(), grant, id);
      if (revoked === undefined) throw tokenNotFound();
      return reply.code(204).send();
    },
  );
}

/** The position of a token that the user has or had. Undefined for an empty text. */
function positionOf(id: string, { caller }: Grant): TokenPosition | undefined {
  const hash = rangeOf(id)?.last;
  return hash && { store: caller.store, hash };
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
  { scopes, expiresAt, label = '' }: Static<typeof NewToken>,
  { caller, expiresAtMs: latestMs }: Grant,
  hash: Uint8Array,
): OwnToken {
  const createdAtMs = Date.now();
  const wanted = new Set<Scope>(scopes ?? caller.scopes);
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
  const inOrder = allScopes.filter((scope) => wanted.has(scope));
  return { hash, scopes: inOrder, label, createdAtMs, expiresAtMs };
}

function refuseExpiry(detail: string) {
  return invalidRequest([{ pointer: '/expiresAt', detail }]);
}

/** A token as responses show it. Times that do not apply are absent. */
function valueOf(
  token: Omit<TokenRecord, 'store' | 'user' | 'role' | 'position'>,
  { tokenId: currentId }: Grant,
): object {
  const { id, label, scopes } = token;
  return {
    id,
    label,
    scopes,
    state: stateOf(token, Date.now()),
    current: id === currentId,
    createdAt: formatTimestamp(token.createdAtMs),
    expiresAt: formatTimestamp(token.expiresAtMs),
    revokedAt: formatTimestamp(token.revokedAtMs),
    lastUsedAt: formatTimestamp(token.lastUsedAtMs),
  };
}
