/**
 * The operations on plants: their parameters and bodies.
 */
import { maxId } from '../../plants/ids.ts';
import { NewPlant, PlantField, PlantId, SearchText, Tag } from '../../plants/plant.ts';
import { Type } from '../../shared/typebox.ts';
import { afterOf, limitOf, strict, type Operation } from './operation.ts';

const fields = Type.Optional(
  Type.Array(PlantField, {
    uniqueItems: true,
    minItems: 1,
    description: 'a comma-separated list of id, name and tag, each at most once',
    meaning:
      'The fields of the response, in this order. The default is `name` and `tag`. Send the parameter once for each field, or once with all of them.',
    examples: [['id', 'name', 'tag']],
  }),
);

const after = afterOf(
  'plants with ids',
  Type.Integer({ minimum: 0, maximum: maxId, description: `an integer from 0 to ${maxId}` }),
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

const PlantParams = Type.Object({ id: { ...PlantId, meaning: 'The id of the plant.' } }, strict);
const FieldsQuery = Type.Object({ fields }, strict);

export const createPlant = {
  operationId: 'createPlant',
  summary: 'Create a plant',
  description:
    'Creates a plant that belongs to the calling user. The response is sent after the plant is on disk. If you send your own id, you can repeat the request without creating a second plant. Requires the scope `plants:write`.',
  tags: ['plants'],
  querystring: FieldsQuery,
  body: NewPlant,
} satisfies Operation;

export const listPlants = {
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'Returns the plants that the calling user has access to, in ascending order of id. To get the ids, name them in `fields`. If more plants follow a page with a `limit`, `Link` has the address of the next page. Requires the scope `plants:read`.',
  tags: ['plants'],
  querystring: Type.Object({ limit: limitOf('plants'), after, tag, q, fields }, strict),
} satisfies Operation;

export const getPlant = {
  operationId: 'getPlant',
  summary: 'Get a plant',
  description:
    'Returns one plant that the calling user has access to. Requires the scope `plants:read`.',
  tags: ['plants'],
  params: PlantParams,
  querystring: FieldsQuery,
} satisfies Operation;

export const deletePlant = {
  operationId: 'deletePlant',
  summary: 'Delete a plant',
  description:
    'Deletes one plant permanently. The response is sent after the change is on disk. If you repeat the request, the response is 404. Requires the scope `plants:write`.',
  tags: ['plants'],
  params: PlantParams,
  querystring: Type.Object({}, strict),
} satisfies Operation;
