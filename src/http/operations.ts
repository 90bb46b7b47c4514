/**
 * The operations on plants as schemas: the only source of what a request may say, of its type and
 * of the OpenAPI document.
 */
import type { Static, TSchema } from '@sinclair/typebox';
import type { FastifyTypeProvider } from 'fastify';
import { idMax } from '../ids.ts';
import { Name, NewPlant, PlantId, plantFields, Tag, type PlantField } from '../plant.ts';
import {
  answers,
  bodyTooLarge,
  expectationFailed,
  headersTooLarge,
  methodNotAllowed,
  problemMediaType,
  problemType,
  requestTimeout,
  unsupportedMediaType,
} from './problems.ts';
import { idsExhausted, idTaken, plantNotFound, type ProblemKind } from '../problem.ts';
import { Type } from '../typebox.ts';

/** Types a checked request by its schemas. Answers are written as text, so they have no type here. */
export interface CheckedByTypeBox extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: unknown;
}

/** A `limit` that a signed 32-bit integer carries: some storages take no larger one. */
const limitMax = 2_147_483_647;

const Fields = Type.Array(Type.Unsafe<PlantField>({ type: 'string', enum: [...plantFields] }), {
  uniqueItems: true,
  minItems: 1,
  description: 'a comma-separated list of id, name and tag, each at most once',
  examples: [['id', 'name', 'tag']],
  style: 'form',
  explode: false,
});

const Limit = Type.Integer({
  minimum: 1,
  maximum: limitMax,
  description: `an integer from 1 to ${limitMax}`,
  examples: [20],
});

const After = Type.Integer({
  minimum: 0,
  maximum: idMax,
  description: `an id, an integer from 0 to ${idMax}; the list begins with the next one above it`,
  examples: [40],
});

const strictly = { additionalProperties: false };
const OnePlant = Type.Object({ id: PlantId }, strictly);
const WhichFields = Type.Object({ fields: Type.Optional(Fields) }, strictly);

/** A plant as it is answered: the fields asked for, in that order; `name` and `tag` unless asked. */
const AnsweredPlant = Type.Object(
  { name: Type.Optional(Name), tag: Type.Optional(Tag), id: Type.Optional(PlantId) },
  {
    ...strictly,
    title: 'Plant',
    examples: [{ name: 'Monstera deliciosa', tag: 'indoor' }],
  },
);

const ProblemBody = Type.Object(
  {
    type: Type.String({ description: 'stable name of the kind of problem' }),
    title: Type.String({ description: 'the kind in a few words' }),
    status: Type.Integer({ description: 'the status code' }),
    detail: Type.String({ description: 'what was wrong here, and the mend' }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          pointer: Type.Optional(Type.String({ description: 'place in the body (RFC 6901)' })),
          parameter: Type.Optional(Type.String({ description: 'name of the parameter' })),
          detail: Type.String(),
        }),
        { description: 'every fault of invalid input' },
      ),
    ),
  },
  { title: 'Problem' },
);

const header = (description: string, type = 'string') => ({ description, type });
const requestId = { 'X-Request-Id': header('Names this request in the log of the service') };
const challenge = { 'WWW-Authenticate': header('What is asked for (RFC 6750, section 3)') };
const retryAfter = { 'Retry-After': header('Seconds to wait', 'integer') };

function json(description: string, schema: TSchema, headers: object = {}) {
  return {
    description,
    headers: { ...requestId, ...headers },
    content: { 'application/json': { schema } },
  };
}

/** An answer that is one of these kinds of problem, each with an example. */
function problems(
  description: string,
  examples: Partial<Record<ProblemKind, string>>,
  headers = {},
) {
  const values = Object.entries(examples).map(([kind, detail]) => {
    const { status, title } = answers[kind as ProblemKind]; // its keys are no others
    return [kind, { value: { type: problemType(kind as ProblemKind), title, status, detail } }];
  });
  return {
    description,
    headers: { ...requestId, ...headers },
    content: {
      [problemMediaType]: { schema: ProblemBody, examples: Object.fromEntries(values) },
    },
  };
}

const beforeTheRoute = {
  405: problems(
    'The path does not support the method',
    { 'method-not-allowed': methodNotAllowed('GET, HEAD, OPTIONS, POST').detail },
    { Allow: header('The methods that the path supports') },
  ),
  408: problems('The request took too long to arrive', {
    'request-timeout': requestTimeout().detail,
  }),
  417: problems('The expectation cannot be met', {
    'expectation-failed': expectationFailed().detail,
  }),
  431: problems('The headers are too large', {
    'headers-too-large': headersTooLarge().detail,
  }),
};

const defect = {
  500: problems('A defect of the service', {
    'internal-error': 'The service failed; the request is not the cause. The request id is 6f0c.',
  }),
};

const alwaysPossible = {
  400: problems('Something in the request is not valid', {
    'invalid-request': 'The request has 2 errors; "errors" lists each.',
  }),
  401: problems(
    'No token, or not a good one',
    { 'invalid-token': 'The token is expired; get a new one.' },
    challenge,
  ),
  403: problems(
    'The token lacks the required scope',
    {
      'insufficient-scope':
        'This operation requires the scope plants:write; the token has plants:read.',
    },
    challenge,
  ),
  ...beforeTheRoute,
  ...defect,
  503: problems(
    'Not now',
    {
      overloaded: 'The service is stopping. The request id is 6f0c.',
      'storage-full':
        'There is no space left to store this. Nothing was changed. The request id is 6f0c.',
      'storage-unavailable':
        'The storage is unavailable now. Nothing was changed; try again later. The request id is 6f0c.',
      'outcome-unknown':
        'The change may or may not have been stored. Check before you send it again. The request id is 6f0c.',
    },
    retryAfter,
  ),
};

const noSuchPlant = {
  404: problems('No such plant for this caller', {
    'plant-not-found': plantNotFound().detail,
  }),
};

export const createPlant = {
  operationId: 'createPlant',
  summary: 'Create a plant',
  description: 'Adds a plant to the store. It belongs to the calling user. Scope: plants:write.',
  tags: ['plants'],
  querystring: WhichFields,
  body: NewPlant,
  response: {
    201: json('The plant as it is stored, on disk', AnsweredPlant, {
      Location: header('Address of the plant'),
    }),
    409: problems('The id is taken, or none is left to assign', {
      'id-taken': idTaken(42).detail,
      'ids-exhausted': idsExhausted().detail,
    }),
    413: problems('The body has more than 16 KiB', {
      'body-too-large': bodyTooLarge().detail,
    }),
    415: problems('The body is not plain JSON', {
      'unsupported-media-type': unsupportedMediaType().detail,
    }),
    ...alwaysPossible,
  },
};

export const listOfPlants = {
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'The plants that the calling user has access to, in ascending order of id. Scope: plants:read.',
  tags: ['plants'],
  querystring: Type.Object(
    {
      limit: Type.Optional(Limit),
      after: Type.Optional(After),
      tag: Type.Optional(Tag),
      fields: Type.Optional(Fields),
    },
    strictly,
  ),
  response: {
    200: json('The plants', Type.Array(AnsweredPlant), {
      Link: header('Where a limited page ends and more plants follow: the next one (RFC 8288)'),
    }),
    ...alwaysPossible,
  },
};

export const findPlant = {
  operationId: 'findPlant',
  summary: 'Get a plant',
  description: 'One plant that the calling user has access to. Scope: plants:read.',
  tags: ['plants'],
  params: OnePlant,
  querystring: WhichFields,
  response: { 200: json('The plant', AnsweredPlant), ...noSuchPlant, ...alwaysPossible },
};

export const deletePlant = {
  operationId: 'deletePlant',
  summary: 'Delete a plant',
  description: 'Takes one plant out of the store for good. Scope: plants:write.',
  tags: ['plants'],
  params: OnePlant,
  querystring: Type.Object({}, strictly),
  response: {
    204: { description: 'The plant is gone', headers: requestId },
    ...noSuchPlant,
    ...alwaysPossible,
  },
};

const Health = Type.Object({ status: Type.Literal('ok') }, { title: 'Health' });

export const livez = {
  operationId: 'livez',
  summary: 'Is the process alive?',
  description: 'Answers as long as the process can. Needs no token.',
  tags: ['health'],
  security: [],
  response: { 200: json('Alive', Health), ...beforeTheRoute },
};

export const readyz = {
  operationId: 'readyz',
  summary: 'May requests be sent here?',
  description:
    'Answers 200 while the storage answers and the service is not stopping. Needs no token.',
  tags: ['health'],
  security: [],
  response: {
    200: json('Ready', Health),
    ...beforeTheRoute,
    ...defect,
    503: problems(
      'Not ready',
      {
        overloaded: 'The service is stopping. The request id is 6f0c.',
        'storage-unavailable':
          'The storage is unavailable now. Nothing was changed; try again later. The request id is 6f0c.',
      },
      retryAfter,
    ),
  },
};
