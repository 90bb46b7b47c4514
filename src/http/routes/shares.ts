/**
 * The operations with which users share their plants. Responses do not reveal whether the other user exists.
 */
import type { FastifyInstance } from 'fastify';
import {
  everyone,
  shareAccesses,
  userKey,
  type ShareAccess as Access,
} from '../../access/access.ts';
import { Name } from '../../plants/plant.ts';
import { fixedProblem, invalidParameter, Problem } from '../../problem.ts';
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

export const userParameter = {
  ...Name,
  meaning: 'The name of a user of the same store.',
  examples: ['bob'],
};
export const NewShare = Type.Object(
  { access: ShareAccess },
  {
    additionalProperties: false,
    description: 'a JSON object with the field access',
    meaning: 'What a share allows.',
    examples: [{ access: 'read' }],
  },
);
/** Without an example, so that samples show the first page. */
export const { examples: _, ...nameOfUser } = Name;

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
    params: strict({ user: userParameter }),
    body: NewShare,
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
    params: strict({ user: userParameter }),
    successes: { 204: { description: 'The share is ended.' } },
    problems: ['share-not-found'],
  },
  getTeamShare: {
    summary: 'Get your team share',
    description: 'Returns what the calling user shares with everyone in the store.',
    scopes: ['plants:read', 'shares:write'],
    successes: { 200: { description: 'The share with everyone.', schema: 'TeamShare' } },
    problems: ['share-not-found'],
  },
  sharePlantsWithTeam: {
    summary: 'Share your plants with everyone',
    description:
      'Lets every user of the store, also those who join later, read all plants of the calling user, or also change, delete and restore them. A share with one user can allow more.',
    scopes: ['shares:write'],
    body: NewShare,
    successes: {
      200: { description: 'The share with everyone has this access now.', schema: 'TeamShare' },
      201: { description: 'The share with everyone is new.', schema: 'TeamShare' },
    },
    problems: ['too-many-shares'],
  },
  endTeamShare: {
    summary: 'End your team share',
    description:
      'Ends what the calling user shares with everyone. Shares with single users stay. If you repeat the request, the response is 404.',
    scopes: ['shares:write'],
    successes: { 204: { description: 'The share with everyone is ended.' } },
    problems: ['share-not-found'],
  },
});

export function shareRoutes(
  app: FastifyInstance,
  { storage: { shares }, optionsOf, lists }: RouteOptions,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const { listShares, sharePlants, endShare } = shareOperations;
  const { getTeamShare, sharePlantsWithTeam, endTeamShare } = shareOperations;

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
        const toText = (other: string, access: Access, team?: true) =>
          JSON.stringify({ user: other, access, team });
        const arrays = [
          given.map((share) => toText(share.user, share.access)).join(),
          received
            .map(({ owner, access, isTeam }) => toText(owner, access, isTeam || undefined))
            .join(),
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

  routes.get('/team-share', optionsOf(getTeamShare), async ({ grant }, reply) => {
    const { caller, userName: owner } = grant;
    const access = await shares.find(caller.store, { owner, user: everyone });
    if (access === undefined) throw noTeamShare();
    return sendJson(reply, JSON.stringify({ access }));
  });

  routes.put('/team-share', optionsOf(sharePlantsWithTeam), async (request, reply) => {
    const { grant, body, id } = request;
    const { caller, userName: owner } = grant;
    const share = { owner, user: everyone, access: body.access };
    const isNew = await shares.set(caller.store, share, Date.now(), caller, id);
    return sendJson(reply.code(isNew ? 201 : 200), JSON.stringify({ access: body.access }));
  });

  routes.delete('/team-share', optionsOf(endTeamShare), async ({ grant, id }, reply) => {
    const { caller, userName: owner } = grant;
    const isEnded = await shares.end(caller.store, [{ owner, user: everyone }], caller, id);
    if (!isEnded) throw noTeamShare();
    return reply.code(204).send();
  });
}

const noTeamShare = fixedProblem('share-not-found', 'You share nothing with everyone.');
