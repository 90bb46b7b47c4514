/**
 * The routes with which users share their plants. What they say about a name never depends on whether there is such
 * a user.
 */
import type { FastifyInstance } from 'fastify';
import { invalidInput, isProblem, shareNotFound } from '../problem.ts';
import type { Share, ShareStorage } from '../share-storage.ts';
import { invalidToken, type Authentication } from './auth.ts';
import * as operations from './operations.ts';
import type { ResponseBudget } from './response-budget.ts';
import { sendText } from './send.ts';

const jsonMediaType = 'application/json';

export function shareRoutes(
  app: FastifyInstance,
  {
    storage,
    authentication,
    budgets,
  }: { storage: ShareStorage; authentication: Authentication; budgets: ResponseBudget },
): void {
  const routes = app.withTypeProvider<operations.TypeBoxProvider>();
  const readOptions = { onRequest: authentication.requireScope('plants:read', 'shares:write') };
  const writeOptions = { onRequest: authentication.requireScope('shares:write') };

  routes.get(
    '/shares',
    { ...readOptions, schema: operations.listShares },
    async ({ grant: { caller, userName } }, reply) => {
      const { given, received } = await storage.sharesOf(caller.store, userName);
      const shares = {
        given: given.map(({ user, access }) => ({ user, access })),
        received: received.map(({ owner, access }) => ({ user: owner, access })),
      };
      const json = JSON.stringify(shares);
      budgets.reservationFor(caller, reply.raw).reserveText(json);
      return sendText(reply, jsonMediaType, json);
    },
  );

  routes.put(
    '/shares/:user',
    { ...writeOptions, schema: operations.putShare },
    async ({ grant: { caller, userName: owner }, params: { user }, body: { access } }, reply) => {
      if (user === owner) throw refuseOwnName();
      const share: Share = { owner, user, access };
      const isNew = await storage.share(caller.store, share, Date.now()).catch((error: unknown) => {
        throw isProblem(error, 'invalid-token') ? invalidToken(reply, error.detail) : error;
      });
      reply.code(isNew ? 201 : 200);
      return sendText(reply, jsonMediaType, JSON.stringify({ user, access }));
    },
  );

  // Both directions, so that a repeated request never ends another share than the first one.
  routes.delete(
    '/shares/:user',
    { ...writeOptions, schema: operations.deleteShare },
    async ({ grant: { caller, userName: own }, params: { user: other } }, reply) => {
      const ends = [
        { owner: own, user: other },
        { owner: other, user: own },
      ];
      if (!(await storage.unshare(caller.store, ends))) throw shareNotFound();
      return reply.code(204).send();
    },
  );
}

function refuseOwnName() {
  return invalidInput({ parameter: 'user' }, 'You cannot share with yourself.');
}
