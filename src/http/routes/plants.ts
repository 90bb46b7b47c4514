/**
 * The routes of the operations on plants. They pass a validated request to the storage and send its result as JSON.
 */
import type { Static } from '@sinclair/typebox';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PageReader } from '../auth/auth.ts';
import {
  binStart,
  maxHistory,
  parsePosition,
  type DeletedPlant,
  type PlantChange,
} from '../../log/change-log.ts';
import { defaultFields, isShort, plantJson } from '../../plants/lists.ts';
import type { OwnedPlant, PlantCursor, PlantQuery } from '../../plants/plant-storage.ts';
import { plantFields, textsOf } from '../../plants/fields.ts';
import type { PlantField } from '../../plants/plant.ts';
import { invalidParameter, outcomeUnknown, plantNotFound } from '../../problem.ts';
import { maxLimit, type RouteOptions } from './operation.ts';
import { plantOperations as operations } from './plant-schemas.ts';
import { idempotencyKey } from '../request/idempotency-key.ts';
import { conditionOf, isCurrent, sendNotModified, setEntityTag } from '../request/conditions.ts';
import { wantedBy } from '../response/send-list.ts';
import { sendJson } from '../response/send.ts';
import { validateQuery, type TypeBoxProvider } from '../request/validation.ts';

export function plantRoutes(
  app: FastifyInstance,
  { storage, optionsOf, lists, baseUrl }: RouteOptions,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();

  /** Sends a plant with its entity tag and the fields that the query names. `sent` are those that the client has sent. */
  async function send(
    request: PlantRequest,
    reply: FastifyReply,
    plant: OwnedPlant,
    sent: readonly PlantField[] = [],
  ): Promise<FastifyReply> {
    const { caller } = request.grant;
    const { fields: named = defaultFields } = request.query;
    const canRead = caller.scopes.has('plants:read');
    // Without it, the client sees nothing of a change that it does not know.
    const visible = canRead ? named : named.filter((one) => one === 'id' || sent.includes(one));
    const fields: readonly PlantField[] = visible.length > 0 ? visible : ['id'];
    const names = fields.includes('owner') ? await nameOwner(request, plant) : undefined;
    if (canRead) setEntityTag(reply, plant);
    return sendJson(reply, plantJson(plant, caller, fields, names));
  }

  /** The name of the owner, by their number. */
  async function nameOwner(
    { grant: { caller, userName }, method }: PlantRequest,
    { owner }: OwnedPlant,
  ): Promise<ReadonlyMap<number, string>> {
    if (owner === caller.user) return new Map([[owner, userName]]);
    return storage.users.namesOf(caller.store, [owner]).catch((error: unknown) => {
      const isStored = method === 'POST' || method === 'PATCH';
      throw isStored ? outcomeUnknown(error) : error;
    });
  }

  routes.post('/plants', optionsOf(operations.createPlant), async (request, reply) => {
    const { grant, body, id } = request;
    const options = { request: id, key: idempotencyKey(request) };
    const plant = await storage.plants.create(grant.caller, body, options);
    reply.code(201).header('location', `${baseUrl}/plants/${plant.id}`);
    if (plant.isReplay) reply.header('idempotent-replayed', 'true');
    // Without a tag, the client has sent an empty one.
    return send(request, reply.header('change-position', plant.position), plant, plantFields);
  });

  /** The only page of a list that takes one short read; undefined for other lists, or if the query is not valid. */
  const readPage: PageReader = (request, caller) => {
    const { querystring } = operations.listPlants;
    if (validateQuery(querystring, request).listed.length > 0) return undefined;
    const query = request.query as Static<typeof querystring>; // it is valid
    const { limit, after = 0, tag, q, sort, fields = defaultFields } = query;
    if (limit === undefined) return undefined;
    const page: PlantQuery = { limit, after, tag, q, sort, fields };
    return isShort(caller.read, page) ? storage.plants.list(caller, page) : undefined;
  };

  routes.get('/plants', optionsOf(operations.listPlants, readPage), async (request, reply) => {
    const { query, grant } = request;
    const { caller } = grant;
    const { limit, tag, q, sort, count, fields = defaultFields } = query;
    // Each read of a sorted list goes through all plants, so a response has the plants of one.
    if (sort !== undefined && limit === undefined) {
      const detail = `"limit" is missing. Send a limit with "sort": an integer from 1 to ${maxLimit}.`;
      throw invalidParameter('limit', detail);
    }
    if (count === true) {
      const filters = { tag, q, assertWanted: wantedBy(reply.raw) };
      reply.header('total-count', await storage.plants.count(caller, filters));
    }
    const page = request.page ?? readPage(request, caller);
    if (page !== undefined) return lists.sendPage(request, reply, query, await page);
    const filter = { tag, q, sort, fields };
    return lists.send<PlantCursor>(request, reply, {
      query,
      maxBatchItems: 1_000,
      minBatchItems: sort && limit,
      read: async ({ after = 0, ...range }) => {
        const { json, next } = await storage.plants.list(caller, { after, ...range, ...filter });
        return { arrays: [json], next };
      },
    });
  });

  routes.get('/plants/:id', optionsOf(operations.getPlant), async (request, reply) => {
    const plant = await storage.plants.find(request.grant.caller, request.params.id);
    if (plant === undefined) throw plantNotFound();
    // What the caller can do is no part of the entity tag.
    const isFixed = request.query.fields?.includes('access') !== true;
    if (isCurrent(request, plant) && isFixed) return sendNotModified(request, reply, plant);
    return send(request, reply, plant);
  });

  routes.patch('/plants/:id', optionsOf(operations.updatePlant), async (request, reply) => {
    const { grant, params, body, id } = request;
    const options = { condition: conditionOf(request), request: id };
    const plant = await storage.plants.update(grant.caller, params.id, body, options);
    if (plant === undefined) throw plantNotFound();
    const sent = plantFields.filter((field) => Object.hasOwn(body, field));
    return send(request, reply.header('change-position', plant.position), plant, sent);
  });

  routes.delete('/plants/:id', optionsOf(operations.deletePlant), async (request, reply) => {
    const { grant, params, id } = request;
    const options = { condition: conditionOf(request), request: id };
    const position = await storage.plants.delete(grant.caller, params.id, options);
    if (position === undefined) throw plantNotFound();
    return reply.header('change-position', position).code(204).send();
  });

  routes.post('/plants/:id/restore', optionsOf(operations.restorePlant), async (request, reply) => {
    const { grant, params, id } = request;
    const plant = await storage.plants.restore(grant.caller, params.id, { request: id });
    if (plant === undefined) throw plantNotFound();
    return send(request, reply.header('change-position', plant.position), plant);
  });

  routes.get('/bin', optionsOf(operations.listDeletedPlants), async (request, reply) => {
    const { query, grant } = request;
    const { caller } = grant;
    return lists.send(request, reply, {
      query,
      maxBatchItems: 200,
      read: async ({ after = '', ...range }) => {
        const position = parsePosition(after) ?? binStart;
        const page = await storage.log.deleted(caller, { after: position, ...range });
        const users = page.plants.flatMap(({ owner, deletedBy = owner }) => [owner, deletedBy]);
        const names = await storage.users.namesOf(caller.store, users);
        const items = page.plants.map((plant) => JSON.stringify(toDeleted(plant, names)));
        return { arrays: [items.join()], next: page.next?.toString() };
      },
    });
  });

  routes.get(
    '/plants/:id/history',
    optionsOf(operations.getHistory),
    async ({ grant, params, query: { limit = maxHistory } }, reply) => {
      const changes = await storage.log.history(grant.caller, params.id, limit);
      if (changes === undefined) throw plantNotFound();
      return sendJson(reply, JSON.stringify(changes.map(toEntry)));
    },
  );
}

/** Without what the storage does not have: the user of an operator's command, and a plant that was not there before. */
function toEntry({ event, atMs, user, owner, ...texts }: PlantChange) {
  const before = texts.name === undefined ? undefined : { ...textsOf(texts), owner };
  return { event, at: new Date(atMs).toISOString(), user, before };
}

/** Without what the storage does not have: the user of an operator's command. */
function toDeleted(plant: DeletedPlant, names: ReadonlyMap<number, string>) {
  const owner = names.get(plant.owner);
  const deletedAt = new Date(plant.deletedAtMs).toISOString();
  const deletedBy = plant.deletedBy === undefined ? undefined : names.get(plant.deletedBy);
  return { id: plant.id, ...textsOf(plant), owner, deletedAt, deletedBy };
}

type PlantRequest = FastifyRequest<{ Querystring: { fields?: readonly PlantField[] } }>;
