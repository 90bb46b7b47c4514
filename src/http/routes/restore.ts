/**
 * The operations that put the plants of the calling user back as they were at a time. They leave out plants that belong to
 * somebody else now, or did then.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { putBackAll, shownOf } from '../../access/put-back.ts';
import { differencesSince, positionBefore, type Difference } from '../../log/differences.ts';
import { insufficientScope, invalidRequest } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import { parseTimestamp } from '../../shared/timestamp.ts';
import { Type } from '../../shared/typebox.ts';
import type { TypeBoxProvider } from '../request/validation.ts';
import { wantedBy } from '../response/send-list.ts';
import { sendJson } from '../response/send.ts';
import { operationsOf, strict, type RouteOptions } from './operation.ts';

/** A response is held in memory. */
const maxPlants = 10_000;
const tooMany = `More than ${maxPlants} of your plants have changed since then. Send a later time, or ask the operator of this service.`;

const since = Type.String({
  format: 'date-time',
  description: 'a time with an offset from UTC, as in RFC 3339',
  meaning: 'The time to return to.',
  examples: ['2026-02-01T09:00:00Z'],
});

export const restoreOperations = operationsOf('plants', {
  previewReturn: {
    summary: 'Preview a return to a time',
    description: 'Returns what `POST /restore` would do, and changes nothing.',
    scopes: ['plants:read'],
    querystring: strict({ since }),
    successes: { 200: { description: 'What would be done.', schema: 'Return' } },
    problems: ['changes-not-kept'],
  },
  returnToTime: {
    summary: 'Return to a time',
    description:
      'Puts the plants that the calling user owns or owned back as they were at a time. Deleted plants come back, plants that were added since are deleted, and changed ones get their earlier name and tag. Plants of other users stay as they are. Needs the scope `plants:read` too.',
    scopes: ['plants:write'],
    body: Type.Object(
      { since: { ...since, meaning: 'When the plants were as you want them.' } },
      {
        additionalProperties: false,
        description: 'a JSON object with the field since',
        meaning: 'Where to return to.',
        examples: [{ since: '2026-02-01T09:00:00Z' }],
      },
    ),
    successes: { 200: { description: 'What was done.', schema: 'Return' } },
    problems: ['changes-not-kept'],
  },
});

export function restoreRoutes(app: FastifyInstance, { storage, optionsOf }: RouteOptions): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();

  async function putBack({ grant, id, method }: FastifyRequest, reply: FastifyReply, time: string) {
    const { caller, storeName } = grant;
    const isTrial = method !== 'POST';
    const refuse = (detail: string) =>
      invalidRequest([{ ...(isTrial ? { parameter: 'since' } : { pointer: '/since' }), detail }]);
    const sinceMs = parseTimestamp(time) ?? 0; // it is valid
    if (sinceMs > Date.now()) throw refuse('The time is in the future. Send an earlier one.');
    if (!caller.scopes.has('plants:read'))
      throw insufficientScope('plants:read', 'This token cannot see plants, which are returned.');
    const assertWanted = wantedBy(reply.raw);
    const check = (plants: number) => {
      assertWanted();
      if (plants > maxPlants) throw refuse(tooMany);
    };
    const from = await positionBefore(storage.log, storeName, sinceMs);
    const found = await differencesSince(storage.log, caller, sinceMs, from, check).catch(
      (error) => {
        throw error instanceof Refusal ? refuse(error.message) : error;
      },
    );
    const isOwn = (plant?: { owner: number }) => (plant?.owner ?? caller.user) === caller.user;
    const isOld = ({ before }: Difference) => Number(before !== undefined);
    const plants = found
      .filter(({ before, now }) => isOwn(before) && isOwn(now))
      .filter(({ deletion, outcome }) => outcome !== 'restored' || isOwn(deletion))
      .toSorted((one, other) => isOld(one) - isOld(other)); // deletions come first
    const undoSince = isTrial ? undefined : new Date().toISOString();
    const done = isTrial ? plants.map(shownOf) : await putBackAll(storage, caller, plants, id);
    return sendJson(reply, JSON.stringify({ since: time, plants: done, undoSince }));
  }

  routes.get('/restore', optionsOf(restoreOperations.previewReturn), (request, reply) =>
    putBack(request, reply, request.query.since),
  );
  routes.post('/restore', optionsOf(restoreOperations.returnToTime), (request, reply) =>
    putBack(request, reply, request.body.since),
  );
}
