/**
 * The routes with which users share their plants. Their responses do not reveal whether the other user exists.
 */
import type { FastifyInstance } from 'fastify';
import { userKey } from '../../access/access.ts';
import { invalidRequest, shareNotFound } from '../../problem.ts';
import type { Share } from '../../access/share-storage.ts';
import { runInSlice } from '../../shared/time-slices.ts';
import { sendList, type Range } from '../response/send-list.ts';
import type { RouteOptions } from './operation.ts';
import { endShare, listShares, sharePlants } from './share-schemas.ts';
import { sendJson } from '../response/send.ts';
import type { TypeBoxProvider } from '../request/validation.ts';

export function shareRoutes(
  app: FastifyInstance,
  { storage, authentication, ...lists }: RouteOptions,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const readOptions = { onRequest: authentication.requireScope(['plants:read', 'shares:write']) };
  const writeOptions = { onRequest: authentication.requireScope(['shares:write']) };

  routes.get('/shares', { ...readOptions, schema: listShares }, async (request, reply) => {
    const { query, grant } = request;
    const { caller, userName } = grant;
    const list = {
      path: '/shares',
      query,
      after: query.after ?? '',
      maxBatchItems: 200,
      frame: ['{"given":[', '],"received":[', ']}'] as const,
      read: async (range: Range<string>) => {
        const page = await runInSlice(userKey(caller), () =>
          storage.shares.of(caller.store, userName, range),
        );
        const given = page.given.map(({ user, access }) => JSON.stringify({ user, access }));
        const received = page.received.map(({ owner: user, access }) =>
          JSON.stringify({ user, access }),
        );
        return { arrays: [given.join(), received.join()], next: page.next };
      },
    };
    return sendList(request, reply, list, lists);
  });

  routes.put(
    '/shares/:user',
    { ...writeOptions, schema: sharePlants },
    async ({ grant, params: { user }, body: { access }, id }, reply) => {
      const { caller, userName: owner } = grant;
      if (user === owner) {
        throw invalidRequest([{ parameter: 'user', detail: 'You cannot share with yourself.' }]);
      }
      const share: Share = { owner, user, access };
      const isNew = await storage.shares.set(caller.store, share, Date.now(), caller, id);
      reply.code(isNew ? 201 : 200);
      return sendJson(reply, JSON.stringify({ user, access }));
    },
  );

  // Both directions, so that a repeated request never ends another share than the first one.
  routes.delete(
    '/shares/:user',
    { ...writeOptions, schema: endShare },
    async ({ grant: { caller, userName: own }, params: { user: other }, id }, reply) => {
      const ends = [
        { owner: own, user: other },
        { owner: other, user: own },
      ];
      if (!(await storage.shares.end(caller.store, ends, caller, id))) throw shareNotFound();
      return reply.code(204).send();
    },
  );
}
