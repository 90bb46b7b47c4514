/**
 * Health checks: whether the process is alive, and whether it is ready for requests. They reveal nothing else.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Problem } from '../problem.ts';
import type { Storage } from '../storage.ts';
import * as operations from './operations.ts';
import { sendText } from './send.ts';

/** How long the result of a check of the storage is cached. */
const checkCacheMs = 250;

export function healthRoutes(app: FastifyInstance, storage: Storage, stopping: AbortSignal): void {
  const check = cached(() => storage.check());
  app.get('/livez', { schema: operations.livez }, async (_request, reply) => sendOk(reply));

  app.get('/readyz', { schema: operations.readyz }, async (_request, reply) => {
    if (stopping.aborted) throw new Problem('overloaded', 'The service is stopping.');
    await check();
    return sendOk(reply);
  });
}

/** Shares one check, and its result for `checkCacheMs`, because clients need no token and can request any number. */
function cached(check: () => Promise<void>): () => Promise<void> {
  let latest: Promise<void> | undefined;
  let untilMs = Infinity;
  return () => {
    if (latest === undefined || performance.now() >= untilMs) {
      untilMs = Infinity;
      latest = check().finally(() => (untilMs = performance.now() + checkCacheMs));
    }
    return latest;
  };
}

function sendOk(reply: FastifyReply): FastifyReply {
  return sendText(reply, 'application/json', '{"status":"ok"}');
}
