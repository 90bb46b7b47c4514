/**
 * Health checks: whether the process is alive, and whether it is ready for requests. They reveal nothing else.
 */
import type { FastifyInstance } from 'fastify';
import { Problem } from '../../problem.ts';
import type { Storage } from '../../storage.ts';
import { operationsOf } from './operation.ts';
import { sendJson } from '../response/send.ts';

const { livez, readyz } = operationsOf('health', {
  livez: {
    summary: 'Check that the process is alive',
    description: 'Returns 200 as long as the process can respond. Needs no token.',
    successes: { 200: { description: 'The process is alive.', schema: 'Health' } },
  },
  readyz: {
    summary: 'Check that the service is ready',
    description:
      'Returns 200 if the storage responds, writes work, and the service is not stopping. Otherwise 503, also with `reads` and `writes`. Needs no token.',
    successes: { 200: { description: 'The service is ready.', schema: 'Readiness' } },
    problems: ['storage-unavailable', 'overloaded'],
  },
});

export function healthRoutes(
  app: FastifyInstance,
  storage: Storage,
  writeFailure: () => Problem | undefined,
  stopping: AbortSignal,
): void {
  const check = shared(() => storage.check());
  app.get('/livez', { schema: livez }, async (_request, reply) =>
    sendJson(reply, '{"status":"ok"}'),
  );

  app.get('/readyz', { schema: readyz }, async (_request, reply) => {
    if (stopping.aborted) throw notReady(new Problem('overloaded', 'The service is stopping.'));
    await check().catch((error: unknown) => {
      throw notReady(error);
    });
    const failure = writeFailure();
    if (failure !== undefined) throw notReady(failure, 'ok');
    const writes = storage.hasRival === true ? 'other-primary' : 'ok';
    return sendJson(reply, JSON.stringify({ status: 'ok', reads: 'ok', writes }));
  });
}

/** Adds the state of reads and writes, for balancers. */
function notReady(error: unknown, reads = 'unavailable'): unknown {
  if (!(error instanceof Problem)) return error;
  const members = { reads, writes: 'unavailable' };
  return new Problem(error.kind, error.detail, { members, cause: error.cause });
}

/** Shares a check that is in progress, because clients need no token and can request any number. */
function shared(check: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= check().finally(() => (running = undefined)));
}
