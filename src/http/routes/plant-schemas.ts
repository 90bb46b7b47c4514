/**
 * The operations on plants: their parameters, bodies and responses.
 */
import { shownFields } from '../../plants/fields.ts';
import { maxId } from '../../plants/ids.ts';
import { maxHistory } from '../../log/change-log.ts';
import { NewPlant, PlantField, PlantId, PlantPatch, SearchText, Tag } from '../../plants/plant.ts';
import { sorts, type Sort } from '../../plants/scans.ts';
import { Type } from '../../shared/typebox.ts';
import { afterOf, limitOf, operationsOf, strict, type Operation } from './operation.ts';

export const fields = Type.Optional(
  Type.Array(PlantField, {
    uniqueItems: true,
    minItems: 1,
    description: `a comma-separated list of ${shownFields.join(', ')}, each at most once`,
    meaning:
      'The fields of the response, in this order. The default is `name` and `tag`. `owner` is the name of the user who owns the plant, and `access` what you can do with it: `read` or `write`. Send the parameter once for each field, or once with all of them.',
    examples: [['id', 'name', 'tag']],
  }),
);

const limit = limitOf('plants');

const after = afterOf(
  'plants',
  Type.Union(
    [Type.Integer({ minimum: 0, maximum: maxId }), Type.String({ format: 'sort-cursor' })],
    {
      description: `an id from 0 to ${maxId}, or with \`sort\` a cursor of the same order`,
    },
  ),
);

const sort = Type.Optional(
  Type.Unsafe<Sort>({
    type: 'string',
    enum: [...sorts],
    description: 'one of name and -name',
    meaning:
      'Sorts the plants by name without regard to case and accents, as `q` compares texts, and plants with the same name by id. Without it, they are in ascending order of id. The service searches all plants that the user has access to for each page, so it needs a `limit`.',
  }),
);

const count = Type.Optional(
  Type.Boolean({
    description: 'true or false',
    meaning:
      'Whether `Total-Count` has the number of plants that the list has without `limit` and `after`. The service may search all plants that the user has access to.',
  }),
);

const tag = Type.Optional({
  ...Tag,
  meaning:
    'Lists only plants with exactly this tag. An empty tag lists the plants without one. The service may search all plants that the user has access to.',
});

const q = Type.Optional({
  ...SearchText,
  meaning:
    'Lists only plants whose name or tag contains this text. Case, accents and variants of letters do not matter: `lodz` finds `Łódź`. With `tag`, a plant must match both. The service may search all plants that the user has access to.',
});

const plantParams = strict({ id: { ...PlantId, meaning: 'The id of the plant.' } });
const fieldsQuery = strict({ fields });
const conditions: Operation['requestHeaders'] = ['If-Match', 'If-None-Match'];

export const plantOperations = operationsOf('plants', {
  createPlant: {
    summary: 'Create a plant',
    description:
      'Creates a plant that belongs to the calling user. The response is sent after the plant is on disk. With an `Idempotency-Key`, you can repeat the request for 24 hours and get the same response, without creating a second plant.',
    scopes: ['plants:write'],
    querystring: fieldsQuery,
    body: NewPlant,
    requestHeaders: ['Idempotency-Key'],
    successes: {
      201: {
        description: 'The plant is created.',
        schema: 'Plant',
        created: ['plant', '/plants/42'],
        headers: ['ETag', 'Idempotent-Replayed', 'Change-Position'],
      },
    },
    problems: ['quota-exceeded', 'id-taken', 'idempotency-key-reused'],
  },
  listPlants: {
    summary: 'List plants',
    description:
      'Returns the plants that the calling user has access to, in ascending order of id, or sorted by name. To get the ids, name them in `fields`. If more plants follow a page with a `limit`, `Link` has the address of the next page.',
    scopes: ['plants:read'],
    querystring: strict({ limit, after, tag, q, sort, count, fields }),
    successes: {
      200: { description: 'The plants.', items: 'Plant', headers: ['Link', 'Total-Count'] },
    },
  },
  getPlant: {
    summary: 'Get a plant',
    description:
      'Returns one plant that the calling user has access to. `ETag` identifies its present state.',
    scopes: ['plants:read'],
    params: plantParams,
    querystring: fieldsQuery,
    requestHeaders: conditions,
    successes: {
      200: { description: 'The plant.', schema: 'Plant', headers: ['ETag'] },
      304: { description: 'The plant has an entity tag of `If-None-Match`.', headers: ['ETag'] },
    },
    problems: ['plant-not-found', 'precondition-failed'],
  },
  updatePlant: {
    summary: 'Update a plant',
    description:
      'Changes the name or the tag of a plant (JSON Merge Patch, RFC 7396). Its owner and its id stay. The response is sent after the change is on disk. With `If-Match`, changes it only if it is as you have read it.',
    scopes: ['plants:write'],
    params: plantParams,
    querystring: fieldsQuery,
    body: PlantPatch,
    requestHeaders: conditions,
    successes: {
      200: {
        description: 'The plant after the change.',
        schema: 'Plant',
        headers: ['ETag', 'Change-Position'],
      },
    },
    problems: ['plant-read-only', 'plant-not-found', 'precondition-failed'],
  },
  restorePlant: {
    summary: 'Restore a plant',
    description:
      'Brings a deleted plant back as it was, with its id and its owner, while the service keeps the change. The response is sent after the change is on disk.',
    scopes: ['plants:write'],
    params: plantParams,
    querystring: fieldsQuery,
    successes: {
      200: {
        description: 'The plant is back.',
        schema: 'Plant',
        headers: ['ETag', 'Change-Position'],
      },
    },
    problems: ['plant-read-only', 'quota-exceeded', 'plant-not-found', 'id-taken'],
  },
  listDeletedPlants: {
    summary: 'List deleted plants',
    description:
      'Returns the deleted plants that the calling user can restore, in the order of their deletions, the newest first. A plant can be restored for 30 days after its deletion, unless the service is set to another time. If more plants follow a page with a `limit`, `Link` has the address of the next page.',
    scopes: ['plants:read'],
    querystring: strict({
      limit,
      after: Type.Optional(
        Type.String({
          format: 'log-position',
          description: 'a cursor of this list',
          meaning:
            'The cursor: the response has only plants that were deleted before this one. The `Link` header of a page has the next cursor.',
        }),
      ),
    }),
    successes: {
      200: { description: 'The deleted plants.', items: 'DeletedPlant', headers: ['Link'] },
    },
  },
  getHistory: {
    summary: 'Get the history of a plant',
    description:
      'Returns who changed a plant, and when, newest first. A deleted plant has a history while the service keeps it.',
    scopes: ['plants:read'],
    params: plantParams,
    querystring: strict({
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: maxHistory,
          description: `an integer from 1 to ${maxHistory}`,
          meaning: `The maximum number of changes in the response: ${maxHistory} by default.`,
          examples: [10],
        }),
      ),
    }),
    successes: { 200: { description: 'The changes.', items: 'PlantChange' } },
    problems: ['plant-not-found'],
  },
  deletePlant: {
    summary: 'Delete a plant',
    description:
      'Deletes one plant. The response is sent after the change is on disk. If you repeat the request, the response is 404. With `If-Match`, deletes the plant only if it has not changed.',
    scopes: ['plants:write'],
    params: plantParams,
    requestHeaders: conditions,
    successes: { 204: { description: 'The plant is deleted.', headers: ['Change-Position'] } },
    problems: ['plant-read-only', 'plant-not-found', 'precondition-failed'],
  },
});
