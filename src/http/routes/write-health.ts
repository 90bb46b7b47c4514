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

export class WriteHealth {
  readonly #storage: Storage;
  readonly #log: Logger;
  #fault: Fault | undefined;

  /** Watches the routes that are added later. */
  constructor(app: FastifyInstance, storage: Storage, log: Logger) {
    this.#storage = storage;
    this.#log = log;
    app.addHook('onRoute', (route) => {
      route.onError = async ({ grant }, _reply, error) => this.#onError(error, grant);
      if (route.method === 'GET' || route.method === 'HEAD') return;
      // Not onResponse, for which Fastify adds two listeners to each response.
      route.onSend = ({ grant }, { statusCode }, _payload, done) => {
        if (statusCode < 300) this.#onSuccess(grant);
        done();
      };
    });
    app.addHook('onClose', async () => void (this.#fault = undefined));
  }

  /** Undefined unless no write has worked for a time. */
  failure(): Problem | undefined {
    const fault = this.#fault;
    if (fault === undefined || performance.now() - fault.sinceMs < failingMs) return undefined;
    return fault.problem;
  }

  /** In a cluster, the nodes of other stores can still work, so the next check is of this store. */
  #onSuccess(grant: Grant | undefined): void {
    if (this.#fault !== undefined && grant !== undefined) this.#fault.store = grant.caller.store;
  }

  #onError(error: unknown, grant: Grant | undefined): void {
    if (!(error instanceof Problem) || grant === undefined) return;
    if (!/^(?:storage-|outcome-unknown)/.test(error.kind)) return;
    if (this.#fault === undefined) {
      const { store } = grant.caller;
      this.#fault = { problem: error, store, sinceMs: performance.now(), isFull: false };
      void this.#checkUntilWritten(this.#fault);
    }
    const fault = this.#fault;
    fault.problem = error;
    if (error.kind !== 'storage-full' || fault.isFull) return;
    fault.isFull = true; // one entry when the disk becomes full: clients repeat their requests
    this.#log.error({ err: error.cause }, 'disk full');
  }

  async #checkUntilWritten(fault: Fault): Promise<void> {
    for (let isWritten = false; !isWritten;) {
      await pause(checkMs, undefined, { ref: false });
      if (this.#fault !== fault) return; // the service has stopped
      isWritten = await this.#storage.checkWrites(fault.store, fault.isFull).then(
        () => true,
        () => false,
      );
    }
    this.#fault = undefined;
    if (fault.isFull) this.#log.info('disk has space again');
  }
}
