/**
 * The operations on plants: from a validated request to the storage, and its result as JSON.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { plantJson } from '../plant.ts';
import { plantNotFound } from '../problem.ts';
import type { Storage } from '../storage.ts';
import { Authentication } from './auth.ts';
import { listPlants, type ListQuery } from './list.ts';
import * as operations from './operations.ts';
import { sendText } from './send.ts';
import { ResponseBudget } from './response-budget.ts';

const jsonMediaType = 'application/json';

export interface PlantRoutesOptions {
  storage: Storage;
  log: Logger;
  /** Prefix of URLs in responses, without a trailing slash; empty for path-absolute URLs. */
  baseUrl: string;
}

export function plantRoutes(
  app: FastifyInstance,
  { storage, log, baseUrl }: PlantRoutesOptions,
): void {
  const responses = new ResponseBudget();
  const routes = app.withTypeProvider<operations.CheckedByTypeBox>();
  const authentication = new Authentication(storage);
  const reader = { onRequest: authentication.requireScope('plants:read') };
  const writer = { onRequest: authentication.requireScope('plants:write') };
  app.decorateRequest('caller');

  routes.post('/plants', { ...writer, schema: operations.createPlant }, async (request, reply) => {
    const plant = await storage.createPlant(request.caller, request.body);
    reply.code(201).header('location', `${baseUrl}/plants/${plant.id}`);
    return sendText(reply, jsonMediaType, plantJson(plant, request.query.fields));
  });

  routes.get('/plants', { ...reader, schema: operations.listOfPlants }, async (request, reply) => {
    const { caller, query } = request;
    const context = {
      storage,
      caller,
      budget: responses.reservationFor(caller, reply.raw),
      isGone: () => reply.raw.destroyed,
    };
    const { body, next } = await listPlants(context, query);
    if (next !== undefined) {
      reply.header('link', `<${baseUrl}/plants?${queryWith(query, next)}>; rel="next"`);
    }
    if (body instanceof Readable) {
      if (request.method === 'HEAD') return sendText(reply, jsonMediaType, Readable.from([]));
      // The status has been sent by then, so the service can only abort the response.
      body.once('error', (err) => log.error({ requestId: request.id, err }, 'list aborted'));
    }
    return sendText(reply, jsonMediaType, body);
  });

  routes.get('/plants/:id', { ...reader, schema: operations.findPlant }, async (request, reply) => {
    const plant = await storage.findPlant(request.caller, request.params.id);
    if (plant === undefined) throw plantNotFound();
    return sendText(reply, jsonMediaType, plantJson(plant, request.query.fields));
  });

  routes.delete(
    '/plants/:id',
    { ...writer, schema: operations.deletePlant },
    async (request, reply) => {
      const deleted = await storage.deletePlant(request.caller, request.params.id);
      if (!deleted) throw plantNotFound();
      return reply.code(204).send();
    },
  );
}

/** The query of the next page: every other parameter is kept. */
function queryWith({ limit, tag, fields }: ListQuery, after: number): string {
  let query = `limit=${limit}&after=${after}`;
  if (tag !== undefined) query += `&tag=${encodeURIComponent(tag)}`;
  if (fields !== undefined) query += `&fields=${encodeURIComponent(fields.join())}`;
  return query;
}
