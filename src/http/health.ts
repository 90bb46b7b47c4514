/**
 * For whoever runs the service: is it alive, and may it be sent requests? Both say nothing but that.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Problem } from '../problem.ts';
import type { Storage } from '../storage.ts';
import * as operations from './operations.ts';
import { sendText } from './send.ts';

export function healthRoutes(app: FastifyInstance, storage: Storage, stopping: AbortSignal): void {
  app.get('/livez', { schema: operations.livez }, async (_request, reply) => sendOk(reply));

  app.get('/readyz', { schema: operations.readyz }, async (_request, reply) => {
    if (stopping.aborted) throw new Problem('overloaded', 'The service is stopping.');
    await storage.check();
    return sendOk(reply);
  });
}

function sendOk(reply: FastifyReply): FastifyReply {
  return sendText(reply, 'application/json', '{"status":"ok"}');
}
