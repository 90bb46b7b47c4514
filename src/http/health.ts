/**
 * For whoever runs the service: is it alive, and may it be sent requests? Both say nothing but that.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Problem } from '../problem.ts';
import type { Storage } from '../storage.ts';
import * as operations from './operations.ts';
import { sendText } from './send.ts';

/** How long an answer of the storage is given to those who ask after it came. */
const sharedMs = 250;

export function healthRoutes(app: FastifyInstance, storage: Storage, stopping: AbortSignal): void {
  const check = shared(() => storage.check());
  app.get('/livez', { schema: operations.livez }, async (_request, reply) => sendOk(reply));

  app.get('/readyz', { schema: operations.readyz }, async (_request, reply) => {
    if (stopping.aborted) throw new Problem('overloaded', 'The service is stopping.');
    await check();
    return sendOk(reply);
  });
}

/**
 * One check for all who ask while it is in progress, and for a moment after it: anybody may ask, as often
 * as they like, and each check costs the storage something.
 */
function shared(check: () => Promise<void>): () => Promise<void> {
  let latest: Promise<void> | undefined;
  let untilMs = Infinity;
  return () => {
    if (latest === undefined || performance.now() >= untilMs) {
      untilMs = Infinity;
      latest = check().finally(() => (untilMs = performance.now() + sharedMs));
    }
    return latest;
  };
}

function sendOk(reply: FastifyReply): FastifyReply {
  return sendText(reply, 'application/json', '{"status":"ok"}');
}
