/**
 * The routes of the operations on plants. They pass a validated request to the storage and send its result as JSON.
 */
import type { Static } from '@sinclair/typebox';
import type { FastifyInstance } from 'fastify';
import type { Reach } from '../../access/access.ts';
import { isShort } from '../../plants/lists.ts';
import { defaultFields, plantJson } from '../../plants/lists.ts';
import type { PlantQuery } from '../../plants/plant-storage.ts';
import { plantNotFound } from '../../problem.ts';
import { assertConnected, sendList, sendShortPage, type Range } from '../response/send-list.ts';
import type { RouteOptions } from './operation.ts';
import { createPlant, deletePlant, getPlant, listPlants } from './plant-schemas.ts';
import { sendJson } from '../response/send.ts';
import { validateQuery, type TypeBoxProvider } from '../request/validation.ts';

export function plantRoutes(
  app: FastifyInstance,
  { storage, authentication, ...lists }: RouteOptions,
): void {
  const { baseUrl } = lists;
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const readOptions = { onRequest: authentication.requireScope(['plants:read']) };
  const writeOptions = { onRequest: authentication.requireScope(['plants:write']) };

  routes.post('/plants', { ...writeOptions, schema: createPlant }, async (request, reply) => {
    const plant = await storage.plants.create(request.grant.caller, request.body);
    reply.code(201).header('location', `${baseUrl}/plants/${plant.id}`);
    return sendJson(reply, plantJson(plant, request.query.fields));
  });

  routes.get(
    '/plants',
    {
      onRequest: authentication.requireScope(['plants:read'], (request, caller) => {
        const { querystring } = listPlants;
        if (validateQuery(querystring, request).listed.length > 0) return undefined;
        const page = shortPageOf(caller.read, request.query as Static<typeof querystring>); // it is valid
        return page && storage.plants.list(caller, page);
      }),
      schema: listPlants,
    },
    async (request, reply) => {
      const { query, page } = request;
      const { caller } = request.grant;
      const short = shortPageOf(caller.read, query);
      if (short !== undefined) {
        const read = await (page ?? storage.plants.list(caller, short));
        return sendShortPage(request, reply, '/plants', read, lists);
      }
      const { after = 0, tag, q, fields = defaultFields } = query;
      const assertWanted = () => assertConnected(reply);
      const list = {
        path: '/plants',
        query,
        after,
        maxBatchItems: 1_000,
        frame: ['[', ']'] as const,
        read: async (range: Range<number>) => {
          const wanted = { ...range, tag, q, fields, assertWanted };
          const { json, next } = await storage.plants.list(caller, wanted);
          return { arrays: [json], next };
        },
      };
      return sendList(request, reply, list, lists);
    },
  );

  routes.get('/plants/:id', { ...readOptions, schema: getPlant }, async (request, reply) => {
    const plant = await storage.plants.find(request.grant.caller, request.params.id);
    if (plant === undefined) throw plantNotFound();
    return sendJson(reply, plantJson(plant, request.query.fields));
  });

  routes.delete('/plants/:id', { ...writeOptions, schema: deletePlant }, async (request, reply) => {
    const deleted = await storage.plants.delete(request.grant.caller, request.params.id);
    if (!deleted) throw plantNotFound();
    return reply.code(204).send();
  });
}

/** The only page of a list that takes one short read; undefined for other lists. */
function shortPageOf(
  reach: Reach,
  query: Static<typeof listPlants.querystring>,
): PlantQuery | undefined {
  const { limit, after = 0, tag, q, fields = defaultFields } = query;
  if (limit === undefined) return undefined;
  const page = { limit, after, tag, q, fields };
  return isShort(reach, page) ? page : undefined;
}
