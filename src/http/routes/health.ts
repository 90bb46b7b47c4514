/**
 * Health checks: whether the process is alive, and whether it is ready for requests. They reveal nothing else.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Problem } from '../../problem.ts';
import type { Storage } from '../../storage.ts';
import type { Operation } from './operation.ts';
import { sendJson } from '../response/send.ts';

const livez = {
  operationId: 'livez',
  summary: 'Check that the process is alive',
  description: 'Returns 200 as long as the process can respond. Needs no token.',
  tags: ['health'],
  security: [],
} satisfies Operation;

const readyz = {
  operationId: 'readyz',
  summary: 'Check that the service is ready',
  description:
    'Returns 200 if the storage responds and the service is not stopping. Needs no token.',
  tags: ['health'],
  security: [],
} satisfies Operation;

export function healthRoutes(app: FastifyInstance, storage: Storage, stopping: AbortSignal): void {
  const check = shared(() => storage.check());
  app.get('/livez', { schema: livez }, async (_request, reply) => sendOk(reply));

  app.get('/readyz', { schema: readyz }, async (_request, reply) => {
    if (stopping.aborted) throw new Problem('overloaded', 'The service is stopping.');
    await check();
    return sendOk(reply);
  });
}

/** Shares a check that is in progress, because clients need no token and can request any number. */
function shared(check: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= check().finally(() => (running = undefined)));
}

function sendOk(reply: FastifyReply): FastifyReply {
  return sendJson(reply, '{"status":"ok"}');
}
