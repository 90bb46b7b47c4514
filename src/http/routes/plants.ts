/**
 * The routes of the operations on plants. They pass a validated request to the storage and send its result as JSON.
 */
import type { Static } from '@sinclair/typebox';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Grant, Reach } from '../../access/access.ts';
import {
  binStart,
  maxHistory,
  parsePosition,
  type DeletedPlant,
  type PlantChange,
} from '../../log/change-log.ts';
import { defaultFields, isShort, plantJson } from '../../plants/lists.ts';
import type { OwnedPlant, PlantQuery } from '../../plants/plant-storage.ts';
import { plantFields, textsOf } from '../../plants/fields.ts';
import type { PlantField } from '../../plants/plant.ts';
import { outcomeUnknown, plantNotFound } from '../../problem.ts';
import { assertConnected, sendList, sendShortPage, type Range } from '../response/send-list.ts';
import type { RouteOptions } from './operation.ts';
import {
  createPlant,
  deletePlant,
  type FieldsQuery,
  getHistory,
  getPlant,
  listDeletedPlants,
  listPlants,
  restorePlant,
  updatePlant,
} from './plant-schemas.ts';
import { idempotencyKey } from '../request/idempotency-key.ts';
import { conditionOf, isCurrent, sendNotModified, setEntityTag } from '../request/conditions.ts';
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

  /** Sends a plant with its entity tag and the fields that the query names. `sent` are those that the client has sent. */
  function send(
    request: PlantRequest,
    reply: FastifyReply,
    plant: OwnedPlant,
    sent: readonly PlantField[] = [],
  ): FastifyReply | Promise<FastifyReply> {
    const { caller } = request.grant;
    const { fields: named = defaultFields } = request.query;
    const canRead = caller.scopes.has('plants:read');
    const fields = canRead ? named : visibleFields(named, sent);
    const respond = (names?: ReadonlyMap<number, string>) => {
      if (canRead) setEntityTag(reply, plant);
      return sendJson(reply, plantJson(plant, caller, fields, names));
    };
    return fields.includes('owner') ? nameOwner(request, plant).then(respond) : respond();
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

  routes.post('/plants', { ...writeOptions, schema: createPlant }, async (request, reply) => {
    const { grant, body, id } = request;
    const options = { request: id, key: idempotencyKey(request) };
    const plant = await storage.plants.create(grant.caller, body, options);
    reply.code(201).header('location', `${baseUrl}/plants/${plant.id}`);
    if (plant.isReplay) reply.header('idempotent-replayed', 'true');
    return send(request, reply, plant, plantFields); // without a tag, the client has sent an empty one
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
    // What the caller can do is no part of the entity tag.
    const isFixed = request.query.fields?.includes('access') !== true;
    if (isCurrent(request, plant) && isFixed) return sendNotModified(request, reply, plant);
    return send(request, reply, plant);
  });

  routes.patch('/plants/:id', { ...writeOptions, schema: updatePlant }, async (request, reply) => {
    const { grant, params, body, id } = request;
    const options = { condition: conditionOf(request), request: id };
    const plant = await storage.plants.update(grant.caller, params.id, body, options);
    if (plant === undefined) throw plantNotFound();
    const sent = plantFields.filter((field) => Object.hasOwn(body, field));
    return send(request, reply, plant, sent);
  });

  routes.delete('/plants/:id', { ...writeOptions, schema: deletePlant }, async (request, reply) => {
    const { grant, params, id } = request;
    const options = { condition: conditionOf(request), request: id };
    if (!(await storage.plants.delete(grant.caller, params.id, options))) throw plantNotFound();
    return reply.code(204).send();
  });

  routes.post(
    '/plants/:id/restore',
    { ...writeOptions, schema: restorePlant },
    async (request, reply) => {
      const { grant, params, id } = request;
      const plant = await storage.plants.restore(grant.caller, params.id, { request: id });
      if (plant === undefined) throw plantNotFound();
      return send(request, reply, plant);
    },
  );

  routes.get('/bin', { ...readOptions, schema: listDeletedPlants }, async (request, reply) => {
    const { query, grant } = request;
    const list = {
      path: '/bin',
      query,
      after: query.after ?? '',
      maxBatchItems: 200,
      frame: ['[', ']'] as const,
      read: async ({ after, limit }: Range<string>) => {
        const wanted = { after: parsePosition(after) ?? binStart, limit };
        const assertWanted = () => assertConnected(reply);
        const page = await storage.log.deleted(grant.caller, { ...wanted, assertWanted });
        const users = page.plants.flatMap(({ owner, deletedBy }) =>
          deletedBy === undefined ? [owner] : [owner, deletedBy],
        );
        const names = await storage.users.namesOf(grant.caller.store, users);
        const items = page.plants.map((plant) => JSON.stringify(toDeleted(plant, names)));
        return { arrays: [items.join()], next: page.next?.toString() };
      },
    };
    return sendList(request, reply, list, lists);
  });

  routes.get(
    '/plants/:id/history',
    { ...readOptions, schema: getHistory },
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

/** What a token without `plants:read` sees of a change: nothing that the client does not know. */
function visibleFields(
  named: readonly PlantField[],
  sent: readonly PlantField[],
): readonly PlantField[] {
  const visible = named.filter((field) => field === 'id' || sent.includes(field));
  return visible.length > 0 ? visible : ['id'];
}

interface PlantRequest {
  grant: Grant;
  query: Static<typeof FieldsQuery>;
  method: string;
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
