/**
 * The route that shows callers what their token grants. It costs no query of its own: authentication has loaded the
 * grant.
 */
import type { FastifyInstance } from 'fastify';
import type { Grant } from '../access.ts';
import type { Authentication } from './auth.ts';
import * as operations from './operations.ts';
import { sendText } from './send.ts';

export function tokenRoutes(app: FastifyInstance, authentication: Authentication): void {
  const options = { onRequest: authentication.requireToken(), schema: operations.findToken };
  app.get('/token', options, async ({ grant }, reply) =>
    sendText(reply, 'application/json', tokenJson(grant)),
  );
}

function tokenJson({ tokenId, userName, storeName, role, caller, expiresAtMs }: Grant): string {
  return JSON.stringify({
    id: tokenId,
    user: userName,
    store: storeName,
    role,
    scopes: [...caller.scopes],
    expiresAt: expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString(),
  });
}
