/**
 * Whether writes work. Once a request of a client has failed because of the storage, the service tries a write that
 * changes nothing, until one works. Responses to clients do not show that, because many requests write nothing.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Grant } from '../../access/access.ts';
import { Problem } from '../../problem.ts';
import type { Storage } from '../../storage.ts';

/** How long no write has worked until the service is not ready. */
const failingMs = 10_000;
const checkMs = 1_000;

interface Fault {
  /** The last one of a client. */
  problem: Problem;
  store: number;
  sinceMs: number;
  isFull: boolean;
}

/** Watches the routes that are added later. The returned function returns undefined unless no write has worked for a time. */
export function watchWrites(
  app: FastifyInstance,
  storage: Storage,
  log: Logger,
): () => Problem | undefined {
  let fault: Fault | undefined;

  const onError = (error: unknown, grant: Grant | undefined) => {
    if (!(error instanceof Problem) || grant === undefined) return;
    if (!/^(?:storage-|outcome-unknown)/.test(error.kind)) return;
    if (fault === undefined) {
      const { store } = grant.caller;
      fault = { problem: error, store, sinceMs: performance.now(), isFull: false };
      void checkUntilWritten(fault);
    }
    fault.problem = error;
    if (error.kind !== 'storage-full' || fault.isFull) return;
    fault.isFull = true; // one entry when the disk becomes full: clients repeat their requests
    log.error({ err: error.cause }, 'disk full');
  };
  /** In a cluster, the nodes of other stores can still work, so the next check is of this store. */
  const onSuccess = (grant: Grant | undefined) => {
    if (fault !== undefined && grant !== undefined) fault.store = grant.caller.store;
  };
  const checkUntilWritten = async (current: Fault) => {
    for (let isWritten = false; !isWritten;) {
      await pause(checkMs, undefined, { ref: false });
      if (fault !== current) return; // the service has stopped
      isWritten = await storage.checkWrites(current.store, current.isFull).then(
        () => true,
        () => false,
      );
    }
    fault = undefined;
    if (current.isFull) log.info('disk has space again');
  };

  app.addHook('onRoute', (route) => {
    route.onError = async ({ grant }, _reply, error) => onError(error, grant);
    if (route.method === 'GET' || route.method === 'HEAD') return;
    // Not onResponse, for which Fastify adds two listeners to each response.
    route.onSend = ({ grant }, { statusCode }, _payload, done) => {
      if (statusCode < 300) onSuccess(grant);
      done();
    };
  });
  app.addHook('onClose', async () => void (fault = undefined));
  return () => {
    const isFailing = fault !== undefined && performance.now() - fault.sinceMs >= failingMs;
    return isFailing ? fault?.problem : undefined;
  };
}
