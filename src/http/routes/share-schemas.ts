/**
 * The operations on shares: their parameters, bodies and responses.
 */
import { Name } from '../../plants/plant.ts';
import { shareAccesses, type ShareAccess as Access } from '../../access/access.ts';
import { Type } from '../../shared/typebox.ts';
import { afterOf, limitOf, strict, type Operation } from './operation.ts';

/** Without an example, so that samples show the first page. */
const { examples: _, ...nameOfUser } = Name;

/** Its description is its rule, as in plant.ts. */
export const ShareAccess = Type.Unsafe<Access>({
  type: 'string',
  enum: shareAccesses,
  description: 'read or write',
  meaning:
    '`read`: the user can list and get the plants. `write`: the user can also change, delete and restore them.',
  examples: ['read'],
});

const ShareParams = Type.Object(
  {
    user: {
      ...Name,
      meaning: 'The name of the other user, who belongs to the same store.',
      examples: ['bob'],
    },
  },
  strict,
);

export const listShares = {
  operationId: 'listShares',
  summary: 'List your shares',
  description:
    'Returns the users with whom the calling user shares plants, and the users who share theirs. Both lists are in ascending order of name. If more users follow a page with a `limit`, `Link` has the address of the next page. Requires the scope `plants:read` or `shares:write`.',
  tags: ['shares'],
  querystring: Type.Object(
    { limit: limitOf('other users'), after: afterOf('users with names', nameOfUser) },
    strict,
  ),
  successes: { 200: { description: 'The shares.', schema: 'Shares', headers: ['Link'] } },
  problems: ['insufficient-scope'],
} satisfies Operation;

export const sharePlants = {
  operationId: 'sharePlants',
  summary: 'Share your plants',
  description:
    'Lets another user of the store read all plants of the calling user, or also change, delete and restore them. The share takes effect with the next request of the other user. The response does not reveal whether that user exists. If not, the share takes effect once they do. Requires the scope `shares:write`.',
  tags: ['shares'],
  params: ShareParams,
  querystring: Type.Object({}, strict),
  body: Type.Object(
    { access: ShareAccess },
    {
      additionalProperties: false,
      description: 'a JSON object with the field access',
      meaning: 'What the other user can do.',
      examples: [{ access: 'read' }],
    },
  ),
  successes: {
    200: { description: 'The share existed, and has this access now.', schema: 'Share' },
    201: { description: 'The share is new.', schema: 'Share' },
  },
  problems: ['insufficient-scope', 'too-many-shares'],
} satisfies Operation;

export const endShare = {
  operationId: 'endShare',
  summary: 'End a share',
  description:
    'Ends sharing between the calling user and the other user, in both directions. If you repeat the request, the response is 404. Requires the scope `shares:write`.',
  tags: ['shares'],
  params: ShareParams,
  querystring: Type.Object({}, strict),
  successes: { 204: { description: 'The share is ended.' } },
  problems: ['insufficient-scope', 'share-not-found'],
} satisfies Operation;
