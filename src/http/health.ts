/**
 * For whoever runs the service: is it alive, and may it be sent requests? Both say nothing but that.
 */
import type { FastifyInstance } from 'fastify';
import { Problem } from '../problem.ts';
import type { Storage } from '../storage.ts';
import * as operations from './operations.ts';

export function healthRoutes(app: FastifyInstance, storage: Storage, stopping: AbortSignal): void {
  app.get('/livez', { schema: operations.livez }, async () => ({ status: 'ok' }));

  app.get('/readyz', { schema: operations.readyz }, async () => {
    if (stopping.aborted) throw new Problem('overloaded', 'The service is stopping.');
    await storage.check();
    return { status: 'ok' };
  });
}
