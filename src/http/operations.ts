/**
 * The operations as schemas: the only source of validation, of the types of requests and of the OpenAPI document.
 * responses.ts has their responses.
 */
import type { Static, TSchema, TString } from '@sinclair/typebox';
import type { FastifyTypeProvider } from 'fastify';
import { maxId } from '../ids.ts';
import { Name, NewPlant, PlantField, PlantId, Tag } from '../plant.ts';
import { ShareAccess } from '../share.ts';
import { publish, Type } from '../typebox.ts';
import { healthy, json, Plant, response, responses, Share, Shares } from './responses.ts';

/** Derives the types of a validated request from its schemas. Responses are text, so they have no type here. */
export interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: unknown;
}

/** A page is held in memory. */
const maxLimit = 1_000;

const fields = Type.Optional(
  publish(
    Type.Array(PlantField, {
      uniqueItems: true,
      minItems: 1,
      description: 'a comma-separated list of id, name and tag, each at most once',
      examples: [['id', 'name', 'tag']],
    }),
    {
      meaning:
        'Which fields the response has, in this order; `name` and `tag` by default. Send the parameter once for each field, or once with all of them.',
    },
  ),
);

const limit = Type.Optional(
  publish(
    Type.Integer({
      minimum: 1,
      maximum: maxLimit,
      description: `an integer from 1 to ${maxLimit}, or left out for the whole list`,
      examples: [100],
    }),
    {
      meaning:
        'The maximum number of plants in the response. Without it, the response has all of them.',
    },
  ),
);

/** Parameters of lists of tokens and shares. */
export const limitOf = (items: string) =>
  publish(limit, {
    meaning: `The maximum number of ${items} in the response. Without it, the response has all of them.`,
  });

/** Without an example, so that samples show the first page. */
const { examples: _, ...nameOfUser } = Name;

export const afterOf = (items: string, schema: TString) =>
  Type.Optional(
    publish(schema, {
      meaning: `The cursor: only ${items} after this one. The \`Link\` header of a page has the next one.`,
    }),
  );

const after = Type.Optional(
  publish(
    Type.Integer({ minimum: 0, maximum: maxId, description: `an integer from 0 to ${maxId}` }),
    {
      meaning:
        'The cursor: only plants with an id above this one. The `Link` header of a page has the next one.',
    },
  ),
);

const tag = Type.Optional(
  publish(Tag, { meaning: 'Only plants with exactly this tag. Empty: only plants without a tag.' }),
);

export const strict = { additionalProperties: false };

const PlantParams = Type.Object(
  { id: publish(PlantId, { meaning: 'The id of the plant.' }) },
  strict,
);
const FieldsQuery = Type.Object({ fields }, strict);

const ShareParams = Type.Object(
  {
    user: publish(
      { ...Name, examples: ['bob'] },
      { meaning: 'The name of the other user, who belongs to the same store.' },
    ),
  },
  strict,
);

const anyOperation = {
  400: responses.InvalidRequest,
  408: responses.RequestTimeout,
  417: responses.ExpectationFailed,
  431: responses.HeadersTooLarge,
  500: responses.InternalError,
  505: responses.VersionNotSupported,
};

/** An operation that requires a token. */
export const tokenOperation = {
  ...anyOperation,
  401: responses.InvalidToken,
  429: responses.RateLimited,
  503: responses.Unavailable,
};

const plantOperation = { ...tokenOperation, 403: responses.InsufficientScope };

export const createPlant = {
  operationId: 'createPlant',
  summary: 'Create a plant',
  description:
    'Creates a plant that belongs to the calling user. The response is sent after the plant is on disk. If you send an id of your own, you can repeat the request without creating a second plant. Requires the scope `plants:write`.',
  tags: ['plants'],
  querystring: FieldsQuery,
  body: NewPlant,
  response: {
    201: json('The plant is created.', Plant, ['Location']),
    409: responses.IdConflict,
    413: responses.BodyTooLarge,
    415: responses.UnsupportedMediaType,
    ...plantOperation,
    403: responses.CreateForbidden,
  },
};

export const listPlants = {
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'Returns the plants that the calling user has access to, in ascending order of id. The response has ids if `fields` names them. If plants follow a page with a `limit`, `Link` has the address of the next page. Requires the scope `plants:read`.',
  tags: ['plants'],
  querystring: Type.Object({ limit, after, tag, fields }, strict),
  response: { 200: json('The plants.', Type.Array(Plant), ['Link']), ...plantOperation },
};

export const getPlant = {
  operationId: 'getPlant',
  summary: 'Get a plant',
  description:
    'Returns one plant that the calling user has access to. Requires the scope `plants:read`.',
  tags: ['plants'],
  params: PlantParams,
  querystring: FieldsQuery,
  response: { 200: json('The plant.', Plant), 404: responses.NotFound, ...plantOperation },
};

export const deletePlant = {
  operationId: 'deletePlant',
  summary: 'Delete a plant',
  description:
    'Deletes one plant permanently. The response is sent after the change is on disk. If you repeat the request, the response is 404. Requires the scope `plants:write`.',
  tags: ['plants'],
  params: PlantParams,
  querystring: Type.Object({}, strict),
  response: {
    204: response('The plant is deleted.', []),
    404: responses.NotFound,
    ...plantOperation,
  },
};

export const listShares = {
  operationId: 'listShares',
  summary: 'List your shares',
  description:
    'Returns with whom the calling user shares their plants, and who shares theirs with the user. Both are in ascending order of the name. If others follow a page with a `limit`, `Link` has the address of the next page. Requires the scope `plants:read` or `shares:write`.',
  tags: ['shares'],
  querystring: Type.Object(
    {
      limit: limitOf('other users'),
      after: afterOf('users with names', nameOfUser),
    },
    strict,
  ),
  response: { 200: json('The shares.', Shares, ['Link']), ...plantOperation },
};

export const sharePlants = {
  operationId: 'sharePlants',
  summary: 'Share your plants',
  description:
    'Lets another user of the store read all plants of the calling user, or read and delete them. It takes effect with the next request of the other user. The response does not depend on whether there is such a user: the share takes effect once there is. Requires the scope `shares:write`.',
  tags: ['shares'],
  params: ShareParams,
  querystring: Type.Object({}, strict),
  body: publish(
    Type.Object(
      { access: ShareAccess },
      {
        additionalProperties: false,
        description: 'a JSON object with the field access',
        examples: [{ access: 'read' }],
      },
    ),
    { meaning: 'What the other user can do.' },
  ),
  response: {
    200: json('The share existed, and has this access now.', Share),
    201: json('The share is new.', Share),
    409: responses.TooManyShares,
    413: responses.BodyTooLarge,
    415: responses.UnsupportedMediaType,
    ...plantOperation,
  },
};

export const endShare = {
  operationId: 'endShare',
  summary: 'End a share',
  description:
    'Ends what the calling user shares with the other user, and what that user shares with the caller. If you repeat the request, the response is 404. Requires the scope `shares:write`.',
  tags: ['shares'],
  params: ShareParams,
  querystring: Type.Object({}, strict),
  response: {
    204: response('The share is ended.', []),
    404: responses.ShareNotFound,
    ...plantOperation,
  },
};

export const livez = {
  operationId: 'livez',
  summary: 'Check that the process is alive',
  description: 'Returns 200 as long as the process can respond. Needs no token.',
  tags: ['health'],
  security: [],
  response: { 200: healthy('The process is alive.'), ...anyOperation },
};

export const readyz = {
  operationId: 'readyz',
  summary: 'Check that the service is ready',
  description:
    'Returns 200 if the storage responds and the service is not stopping. Needs no token.',
  tags: ['health'],
  security: [],
  response: {
    200: healthy('The service is ready.'),
    503: responses.NotReady,
    ...anyOperation,
  },
};
