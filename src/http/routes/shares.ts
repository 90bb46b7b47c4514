/**
 * The operations with which users share their plants. Responses do not reveal whether the other user exists.
 */
import type { FastifyInstance } from 'fastify';
import { shareAccesses, userKey, type ShareAccess as Access } from '../../access/access.ts';
import { Name } from '../../plants/plant.ts';
import { invalidParameter, Problem } from '../../problem.ts';
import { runInSlice } from '../../shared/time-slices.ts';
import { Type } from '../../shared/typebox.ts';
import { afterOf, limitOf, operationsOf, strict, type RouteOptions } from './operation.ts';
import { sendJson } from '../response/send.ts';
import type { TypeBoxProvider } from '../request/validation.ts';

/** Its description is its rule, as in plant.ts. */
export const ShareAccess = Type.Unsafe<Access>({
  type: 'string',
  enum: shareAccesses,
  description: 'read or write',
  meaning:
    '`read`: the user can list and get the plants. `write`: the user can also change, delete and restore them.',
  examples: ['read'],
});

const user = {
  ...Name,
  meaning: 'The name of the other user, who belongs to the same store.',
  examples: ['bob'],
};
/** Without an example, so that samples show the first page. */
const { examples: _, ...nameOfUser } = Name;

export const shareOperations = operationsOf('shares', {
  listShares: {
    summary: 'List your shares',
    description:
      'Returns the users with whom the calling user shares plants, and the users who share theirs. Both lists are in ascending order of name. If more users follow a page with a `limit`, `Link` has the address of the next page.',
    scopes: ['plants:read', 'shares:write'],
    querystring: strict({
      limit: limitOf('other users'),
      after: afterOf('users with names', nameOfUser),
    }),
    successes: { 200: { description: 'The shares.', schema: 'Shares', headers: ['Link'] } },
  },
  sharePlants: {
    summary: 'Share your plants',
    description:
      'Lets another user of the store read all plants of the calling user, or also change, delete and restore them. The share takes effect with the next request of the other user. The response does not reveal whether that user exists. If not, the share takes effect once they do.',
    scopes: ['shares:write'],
    params: strict({ user }),
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
    problems: ['too-many-shares'],
  },
  endShare: {
    summary: 'End a share',
    description:
      'Ends sharing between the calling user and the other user, in both directions. If you repeat the request, the response is 404.',
    scopes: ['shares:write'],
    params: strict({ user }),
    successes: { 204: { description: 'The share is ended.' } },
    problems: ['share-not-found'],
  },
});

export function shareRoutes(
  app: FastifyInstance,
  { storage: { shares }, optionsOf, lists }: RouteOptions,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const { listShares, sharePlants, endShare } = shareOperations;

  routes.get('/shares', optionsOf(listShares), async (request, reply) => {
    const { caller, userName } = request.grant;
    return lists.send(request, reply, {
      query: request.query,
      maxBatchItems: 200,
      frame: ['{"given":[', '],"received":[', ']}'],
      read: async ({ after = '', limit }) => {
        const { given, received, next } = await runInSlice(userKey(caller), () =>
          shares.of(caller.store, userName, { after, limit }),
        );
        const toText = (other: string, access: Access) => JSON.stringify({ user: other, access });
        const arrays = [
          given.map((share) => toText(share.user, share.access)).join(),
          received.map((share) => toText(share.owner, share.access)).join(),
        ];
        return { arrays, next };
      },
    });
  });

  routes.put('/shares/:user', optionsOf(sharePlants), async (request, reply) => {
    const { grant, params, body, id } = request;
    const { caller, userName: owner } = grant;
    const share = { user: params.user, access: body.access };
    if (share.user === owner) throw invalidParameter('user', 'You cannot share with yourself.');
    const isNew = await shares.set(caller.store, { owner, ...share }, Date.now(), caller, id);
    return sendJson(reply.code(isNew ? 201 : 200), JSON.stringify(share));
  });

  // Both directions, so that a repeated request never ends another share than the first one.
  routes.delete('/shares/:user', optionsOf(endShare), async ({ grant, params, id }, reply) => {
    const { caller, userName: own } = grant;
    const ends = [
      { owner: own, user: params.user },
      { owner: params.user, user: own },
    ];
    // The same whether or not there is such a user.
    if (!(await shares.end(caller.store, ends, caller, id))) {
      const detail = 'There is no share between you and a user of this name.';
      throw new Problem('share-not-found', detail);
    }
    return reply.code(204).send();
  });
}
