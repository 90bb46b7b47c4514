/**
 * The operations on shares.
 */
import { Name } from '../../plants/plant.ts';
import { ShareAccess } from '../../access/share.ts';
import { publish, Type } from '../../shared/typebox.ts';
import { afterOf, limitOf, strict, type Operation } from './operation.ts';

export const Share = Type.Object(
  {
    user: Type.String({ description: 'The name of the other user.' }),
    access: ShareAccess,
  },
  {
    description: 'A share between the calling user and another one.',
    examples: [{ user: 'bob', access: 'read' }],
  },
);

export const Shares = Type.Object(
  {
    given: Type.Array(Share, {
      description: 'Users who can access the plants of the calling user.',
    }),
    received: Type.Array(Share, {
      description:
        'Users whose plants the calling user can access: those who shared first, at most 999.',
    }),
  },
  {
    description: 'The shares of the calling user.',
    examples: [{ given: [{ user: 'bob', access: 'read' }], received: [] }],
  },
);

/** Without an example, so that samples show the first page. */
const { examples: _, ...nameOfUser } = Name;

const ShareParams = Type.Object(
  {
    user: publish(
      { ...Name, examples: ['bob'] },
      { meaning: 'The name of the other user, who belongs to the same store.' },
    ),
  },
  strict,
);

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
  successes: { 200: { description: 'The shares.', schema: Shares, isPage: true } },
  problems: ['insufficient-scope'],
} satisfies Operation;

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
  successes: {
    200: { description: 'The share existed, and has this access now.', schema: Share },
    201: { description: 'The share is new.', schema: Share },
  },
  problems: ['insufficient-scope', 'too-many-shares'],
} satisfies Operation;

export const endShare = {
  operationId: 'endShare',
  summary: 'End a share',
  description:
    'Ends what the calling user shares with the other user, and what that user shares with the caller. If you repeat the request, the response is 404. Requires the scope `shares:write`.',
  tags: ['shares'],
  params: ShareParams,
  querystring: Type.Object({}, strict),
  successes: { 204: { description: 'The share is ended.' } },
  problems: ['insufficient-scope', 'share-not-found'],
} satisfies Operation;
