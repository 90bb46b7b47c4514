/**
 * The operation with which clients follow the changes of a store. A request that waits costs no place among those in
 * progress, and ends with its token.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { userKey, type Grant } from '../../access/access.ts';
import {
  changeJson,
  readFeed,
  type FeedChange,
  type FeedPage,
  type Reader,
} from '../../log/feed.ts';
import { Waiter, type Watch } from '../../log/watch.ts';
import { metrics } from '../../metrics/metrics.ts';
import { defaultFields, plantJson } from '../../plants/lists.ts';
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { runInSlice } from '../../shared/time-slices.ts';
import { Type } from '../../shared/typebox.ts';
import type { Authentication } from '../auth/auth.ts';
import type { RequestLimits } from '../auth/request-limits.ts';
import type { TypeBoxProvider } from '../request/validation.ts';
import { wantedBy } from '../response/send-list.ts';
import { limitOf, maxLimit, operationsOf, strict, type RouteOptions } from './operation.ts';
import { fields } from './plant-schemas.ts';

/** Shorter than the timeouts of most proxies. */
const maxWaitSeconds = 25;

/** Changes that become JSON at once. The largest take less than 1 ms. */
const maxFormatted = 100;

/** Requests that read at the same time after a change has woken them. The others wait, so new requests pass. */
const maxWoken = 16;

export const changeOperations = operationsOf('changes', {
  listChanges: {
    summary: 'List changes',
    description:
      'Returns the changes of plants that the calling user has access to, in the order in which they were made, each plant at most once. `plant` is the plant as it is now. If `plant` is absent, the user does not see it any more. `Link` has the address of the next changes, also if there are none yet. Without `after`, the response is empty, and `Link` begins with the changes from now on.',
    scopes: ['plants:read'],
    querystring: strict({
      limit: limitOf('changes', `up to ${maxLimit}`),
      after: Type.Optional(
        Type.String({
          format: 'change-cursor',
          description: 'a cursor of this list',
          meaning:
            'The cursor: the response has only later changes. The `Link` header of a response has the next cursor.',
        }),
      ),
      wait: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: maxWaitSeconds,
          description: `an integer from 0 to ${maxWaitSeconds}`,
          meaning:
            'How many seconds the service waits for a change before it sends an empty response.',
          examples: [maxWaitSeconds],
        }),
      ),
      fields,
    }),
    successes: {
      200: {
        description: 'The changes after the cursor.',
        items: 'Change',
        headers: ['Link', 'Change-Position'],
      },
    },
    problems: ['cursor-ended', 'changes-not-kept'],
  },
});

interface ChangeRouteOptions extends RouteOptions {
  authentication: Authentication;
  limits: RequestLimits;
  watch: Watch;
}

export function changeRoutes(
  app: FastifyInstance,
  { storage, optionsOf, lists, authentication, limits, watch }: ChangeRouteOptions,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const woken = new FairSemaphore({ max: maxWoken });

  /** Reads again after each change of the store, until the reader sees one or the time is over. */
  async function waitFor(
    request: FastifyRequest,
    { raw: response }: FastifyReply,
    first: FeedPage,
    { limit, waitMs }: { limit: number; waitMs: number },
  ): Promise<FeedPage> {
    const { caller, expiresAtMs = Infinity } = request.grant;
    const waiter = new Waiter(caller.store, first.position);
    const end = () => waiter.end();
    const timer = setTimeout(end, Math.min(waitMs, expiresAtMs - Date.now()));
    response.once('close', end);
    if (response.destroyed) end();
    metrics.plant_store_waiting_requests++;
    try {
      let page = first;
      do {
        await watch.wait(waiter);
        if (response.destroyed) return page; // nobody gets it
        page = await woken.run(userKey(caller), async () => {
          request.grant = await authentication.identifyAgain(request.grant);
          const reader = readerOf(request.grant);
          return readFeed(storage.log, reader, page.cursor, limit, wantedBy(response));
        });
        waiter.position = page.position;
      } while (page.changes.length === 0 && !waiter.isOver);
      return page;
    } finally {
      metrics.plant_store_waiting_requests--;
      clearTimeout(timer);
    }
  }

  routes.get('/changes', optionsOf(changeOperations.listChanges), async (request, reply) => {
    const { after, limit = maxLimit, wait = 0, fields: wanted = defaultFields } = request.query;
    const reader = readerOf(request.grant);
    let page = await readFeed(storage.log, reader, after, limit, wantedBy(reply.raw));
    if (after !== undefined && page.changes.length === 0 && page.isEnd && wait > 0) {
      limits.beginWait(request.grant, reply);
      page = await waitFor(request, reply, page, { limit, waitMs: wait * 1_000 });
    }
    const { caller } = request.grant;
    const owners = page.changes.flatMap(({ plant }) => plant?.owner ?? []);
    const names = wanted.includes('owner')
      ? await storage.users.namesOf(caller.store, owners)
      : undefined;
    const jsonOf = (change: FeedChange) =>
      changeJson(change, (plant) => plantJson(plant, caller, wanted, names));
    const items: string[] = [];
    for (let at = 0; at < page.changes.length; at += maxFormatted) {
      const some = page.changes.slice(at, at + maxFormatted);
      items.push(await runInSlice(userKey(caller), async () => some.map(jsonOf).join()));
    }
    const json = items.join();
    reply.header('change-position', page.position);
    const { cursor: next } = page;
    return lists.sendPage(request, reply, { ...request.query, limit }, { json, next });
  });
}

function readerOf({ caller: { store, user, read }, userName }: Grant): Reader {
  return { store, user, userName, read };
}
