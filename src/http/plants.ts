/**
 * The routes of the operations on plants. They pass a validated request to the storage and send its result as JSON.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { FairSemaphore } from '../fair-semaphore.ts';
import { plantJson } from '../plant.ts';
import { plantNotFound } from '../problem.ts';
import type { Storage } from '../storage.ts';
import type { Authentication } from './auth.ts';
import { sendList, sendShortPage, shortPageOf, type ListQuery } from './list.ts';
import * as operations from './operations.ts';
import { connectionClosed } from './problems.ts';
import { sendText } from './send.ts';
import type { ResponseBudget } from './response-budget.ts';

const jsonMediaType = 'application/json';

export interface PlantRoutesOptions {
  storage: Storage;
  authentication: Authentication;
  budgets: ResponseBudget;
  longReads: FairSemaphore;
  log: Logger;
  /** Prefix of URLs in responses, without a trailing slash; empty for path-absolute URLs. */
  baseUrl: string;
}

export function plantRoutes(
  app: FastifyInstance,
  { storage, authentication, budgets, longReads, log, baseUrl }: PlantRoutesOptions,
): void {
  const routes = app.withTypeProvider<operations.TypeBoxProvider>();
  const readOptions = { onRequest: authentication.requireScope('plants:read') };
  const writeOptions = { onRequest: authentication.requireScope('plants:write') };

  routes.post(
    '/plants',
    { ...writeOptions, schema: operations.createPlant },
    async (request, reply) => {
      const plant = await storage.createPlant(request.grant.caller, request.body);
      reply.code(201).header('location', `${baseUrl}/plants/${plant.id}`);
      return sendText(reply, jsonMediaType, plantJson(plant, request.query.fields));
    },
  );

  routes.get(
    '/plants',
    {
      onRequest: authentication.requireScopeToList(({ query }, caller) => {
        const page = shortPageOf(caller.read, query as ListQuery); // the schema of the route has made it one
        return page && storage.listPlants(caller, page);
      }),
      schema: operations.listPlants,
    },
    async (request, reply) => {
      const { grant, query, page } = request;
      const { caller, family } = grant;
      const budget = budgets.reservationFor(caller, reply.raw);
      const assertWanted = () => {
        if (reply.raw.destroyed) throw connectionClosed();
      };
      const short = shortPageOf(caller.read, query);
      const { body, next } = await (short === undefined
        ? longReads.run(family, () => sendList({ storage, caller, budget, assertWanted }, query))
        : sendShortPage(() => page ?? storage.listPlants(caller, short), budget));
      if (next !== undefined) {
        reply.header('link', `<${baseUrl}/plants?${nextPageQuery(query, next)}>; rel="next"`);
      }
      if (body instanceof Readable) {
        if (request.method === 'HEAD') return sendText(reply, jsonMediaType, Readable.from([]));
        // The status has already been sent, so the service can only abort the response.
        body.once('error', (err) => log.error({ requestId: request.id, err }, 'list aborted'));
      }
      return sendText(reply, jsonMediaType, body);
    },
  );

  routes.get(
    '/plants/:id',
    { ...readOptions, schema: operations.findPlant },
    async (request, reply) => {
      const plant = await storage.findPlant(request.grant.caller, request.params.id);
      if (plant === undefined) throw plantNotFound();
      return sendText(reply, jsonMediaType, plantJson(plant, request.query.fields));
    },
  );

  routes.delete(
    '/plants/:id',
    { ...writeOptions, schema: operations.deletePlant },
    async (request, reply) => {
      const deleted = await storage.deletePlant(request.grant.caller, request.params.id);
      if (!deleted) throw plantNotFound();
      return reply.code(204).send();
    },
  );
}

/** The query of the next page, with all other parameters unchanged. */
function nextPageQuery({ limit, tag, fields }: ListQuery, after: number): string {
  let query = `limit=${limit}&after=${after}`;
  if (tag !== undefined) query += `&tag=${encodeURIComponent(tag)}`;
  // Repeated, as openapi.json describes it: a gateway can refuse a comma.
  for (const field of fields ?? []) query += `&fields=${field}`;
  return query;
}
