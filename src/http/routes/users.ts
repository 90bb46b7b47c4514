/**
 * The operations with which managers manage the users of their store. A manager cannot give more than their own token has.
 */
import type { FastifyInstance } from 'fastify';
import { operatorOf, roles, userKey, type Identity } from '../../access/access.ts';
import { decide, questionAbout } from '../../access/explain.ts';
import { ownsPlants, removeUser } from '../../access/remove-user.ts';
import type { FoundUser } from '../../access/user-storage.ts';
import { PlantId } from '../../plants/plant.ts';
import { fixedProblem, invalidParameter } from '../../problem.ts';
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { runInSlice } from '../../shared/time-slices.ts';
import { formatTimestamp } from '../../shared/timestamp.ts';
import { Type } from '../../shared/typebox.ts';
import type { TypeBoxProvider } from '../request/validation.ts';
import { wantedBy } from '../response/send-list.ts';
import { sendJson } from '../response/send.ts';
import { createTokenFor, NewToken } from './new-token.ts';
import { afterOf, limitOf, operationsOf, strict, type RouteOptions } from './operation.ts';
import { nameOfUser, userParameter as user } from './shares.ts';
import { tokenProblems } from './tokens.ts';

export const Role = Type.Unsafe<(typeof roles)[number]>({
  type: 'string',
  enum: roles,
  description: 'member or manager',
  meaning:
    '`member`: own plants, and those shared with the user. `manager`: every plant in the store.',
  examples: ['member'],
});

const forManagers = true;
const scopes = ['users:write'] as const;

export const userOperations = operationsOf('users', {
  listUsers: {
    summary: 'List users',
    description:
      'Returns the users of the store in ascending order of name. For managers. If more users follow a page with a `limit`, `Link` has the address of the next page.',
    scopes,
    forManagers,
    querystring: strict({
      limit: limitOf('users'),
      after: afterOf('users after names', nameOfUser),
    }),
    successes: { 200: { description: 'The users.', items: 'User', headers: ['Link'] } },
    problems: ['manager-required'],
  },
  setRole: {
    summary: 'Set the role of a user',
    description:
      'Makes a user a member or a manager, from the next request on. For managers. The last manager of a store stays one.',
    scopes,
    forManagers,
    params: strict({ user }),
    body: Type.Object(
      { role: Role },
      {
        additionalProperties: false,
        description: 'a JSON object with the field role',
        meaning: 'The new role.',
        examples: [{ role: 'member' }],
      },
    ),
    successes: { 200: { description: 'The user has this role.', schema: 'UserRole' } },
    problems: ['manager-required', 'user-not-found', 'last-manager'],
  },
  removeUser: {
    summary: 'Remove a user',
    description:
      'Revokes the tokens of a user, ends their shares, and gives their plants to another user. For managers. With many plants it takes seconds. If it is interrupted, repeat the request, which continues.',
    scopes,
    forManagers,
    params: strict({ user }),
    querystring: strict({
      'plants-to': Type.Optional({
        ...nameOfUser,
        meaning: 'The name of the user who gets the plants. Required if the removed user owns any.',
      }),
    }),
    successes: { 204: { description: 'The user is removed.' } },
    problems: ['manager-required', 'user-not-found', 'user-owns-plants', 'last-manager'],
  },
  createUserToken: {
    summary: 'Create a token for a user',
    description:
      'Creates a token or an invitation for another user, who becomes a member of the store if there is no such user. For managers. The token has at most the scopes and the lifetime of the token of the request. Without `scopes`, it can read and write plants. An `Idempotency-Key` works as for `POST /tokens`.',
    scopes,
    forManagers,
    requestHeaders: ['Idempotency-Key'],
    params: strict({ user }),
    body: NewToken,
    successes: {
      201: {
        description: 'The token for the user is created.',
        schema: 'OwnToken',
        created: ['token of the user', '/tokens/000000001-22894e9580395e64'],
        headers: ['Idempotent-Replayed'],
      },
    },
    problems: ['manager-required', ...tokenProblems],
  },
  explainAccess: {
    summary: 'Explain the access of a user',
    description: 'Returns whether a user can read and write a plant, and why. For managers.',
    scopes,
    forManagers,
    params: strict({ user }),
    querystring: strict({ plant: { ...PlantId, meaning: 'Which plant.' } }),
    successes: { 200: { description: 'What the user can do.', schema: 'Access' } },
    problems: ['manager-required', 'user-not-found'],
  },
});

export function userRoutes(app: FastifyInstance, options: RouteOptions): void {
  const { storage, optionsOf, lists, baseUrl } = options;
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const operations = userOperations;
  /** One at a time in a store: the user who gets the plants could be removed at the same time. */
  const removals = new FairSemaphore({ maxOfKey: 1 });

  async function find(store: string, name: string): Promise<FoundUser> {
    const { user: found } = await storage.users.find(store, name);
    if (found === undefined) throw userNotFound();
    return found;
  }

  async function findActive(store: string, name: string): Promise<FoundUser> {
    const found = await find(store, name);
    if (found.role === undefined) throw userNotFound();
    return found;
  }

  async function findHeir(
    store: string,
    removed: Identity,
    name: string | undefined,
  ): Promise<Identity | undefined> {
    if (name !== undefined) {
      const { user: heir } = await storage.users.find(store, name);
      if (heir?.role !== undefined) return heir;
      // Not 404: after a lost response, that is how a client learns that the user is removed.
      throw invalidParameter('plants-to', 'The store has no user with this name. Name another.');
    }
    if (await ownsPlants(storage, removed)) throw userOwnsPlants();
    return undefined;
  }

  routes.get('/users', optionsOf(operations.listUsers), async (request, reply) => {
    const { caller, storeName } = request.grant;
    return lists.send(request, reply, {
      query: request.query,
      maxBatchItems: 8, // users can have hundreds of tokens
      read: async ({ after, limit }) => {
        const found = await runInSlice(userKey(caller), () =>
          storage.users.list(storeName, { after, limit: limit + 1 }),
        );
        const users = found.slice(0, limit);
        const items: string[] = [];
        for (const { id, user: name, role, lastUsedAtMs, invitations } of users) {
          const reach = { ...operatorOf(caller.store, [id]), user: caller.user };
          const plants = await storage.plants.count(reach, { assertWanted: wantedBy(reply.raw) });
          const lastUsedAt = formatTimestamp(lastUsedAtMs);
          items.push(JSON.stringify({ user: name, role, plants, lastUsedAt, invitations }));
        }
        return {
          arrays: [items.join()],
          next: found.length > limit ? users.at(-1)?.user : undefined,
        };
      },
    });
  });

  routes.put('/users/:user', optionsOf(operations.setRole), async (request, reply) => {
    const { grant, params, body, id } = request;
    const isSet = await storage.users.setRole(grant.caller, params.user, body.role, id);
    if (!isSet) throw userNotFound();
    return sendJson(reply, JSON.stringify({ user: params.user, role: body.role }));
  });

  routes.delete('/users/:user', optionsOf(operations.removeUser), async (request, reply) => {
    const { grant, params, query, id } = request;
    const { storeName, caller } = grant;
    const heir = query['plants-to'];
    if (heir === params.user) {
      throw invalidParameter('plants-to', 'The user cannot get their own plants. Name another.');
    }
    await removals.run(String(caller.store), async () => {
      const removed = await find(storeName, params.user);
      if (removed.role === undefined && !(await ownsPlants(storage, removed))) throw userNotFound();
      const author = { by: caller.identified, request: id };
      const heirOf = () => findHeir(storeName, removed, heir);
      await heirOf(); // before anything changes
      await removeUser(storage, removed, heirOf, author, wantedBy(reply.raw));
    });
    return reply.code(204).send();
  });

  routes.post(
    '/users/:user/tokens',
    optionsOf(operations.createUserToken),
    async (request, reply) => {
      const { params, body } = request;
      const created = await createTokenFor(
        storage.identity,
        request,
        reply.code(201),
        body,
        params.user,
      );
      reply.header('location', `${baseUrl}/tokens/${created.id}`);
      return sendJson(reply, JSON.stringify(created));
    },
  );

  routes.get('/users/:user/access', optionsOf(operations.explainAccess), async (request, reply) => {
    const { params, query, grant } = request;
    const found = await findActive(grant.storeName, params.user);
    const question = await questionAbout(storage, found, params.user, query.plant);
    const { owner } = question;
    const shown = { user: params.user, plant: query.plant, owner, ...decide(question) };
    return sendJson(reply, JSON.stringify(shown));
  });
}

const userNotFound = fixedProblem(
  'user-not-found',
  'The store has no user with this name. "GET /users" lists all users.',
);

const userOwnsPlants = fixedProblem(
  'user-owns-plants',
  'This user owns plants. Name the user who gets them with "plants-to".',
);
