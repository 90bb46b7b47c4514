/**
 * Whether writes work, by the responses to those of clients. If they have failed and none arrives any more, for example
 * because a balancer sends none, by a write that changes nothing.
 */
import type { FastifyInstance } from 'fastify';
import type { Grant } from '../../access/access.ts';
import { Problem } from '../../problem.ts';
import type { Storage } from '../../storage.ts';

/** How long no write has worked until the service is not ready, and until it tries one itself. */
const failingMs = 10_000;

export class WriteHealth {
  readonly #storage: Storage;
  /** Since the last write that worked. */
  #failed: { problem: Problem; store: number; firstMs: number; lastMs: number } | undefined;
  #isFailing = false;
  #isChecking = false;

  /** Watches the routes that are added later. */
  constructor(app: FastifyInstance, storage: Storage) {
    this.#storage = storage;
    app.addHook('onRoute', (route) => {
      if (route.method === 'GET' || route.method === 'HEAD') return;
      route.onError = async ({ grant }, _reply, error) => this.#onError(error, grant);
      route.onResponse = async (_request, { statusCode }) => {
        if (statusCode < 300) this.#succeed();
      };
    });
  }

  /** Undefined unless no write has worked for a time, and none does. */
  failure(): Problem | undefined {
    const failed = this.#failed;
    if (failed === undefined) return undefined;
    const nowMs = performance.now();
    // A balancer may send no writes any more.
    if (nowMs - failed.lastMs >= failingMs) void this.#check(failed.store);
    else if (nowMs - failed.firstMs >= failingMs) this.#isFailing = true;
    return this.#isFailing ? failed.problem : undefined;
  }

  #onError(error: unknown, grant: Grant | undefined): void {
    if (!(error instanceof Problem) || grant === undefined) return;
    if (!/^(?:storage-|outcome-unknown)/.test(error.kind)) return;
    const lastMs = performance.now();
    const { firstMs } = this.#failed ?? { firstMs: lastMs };
    this.#failed = { problem: error, store: grant.caller.store, firstMs, lastMs };
  }

  #succeed(): void {
    this.#failed = undefined;
    this.#isFailing = false;
  }

  async #check(store: number): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    await this.#storage.checkWrites(store).then(
      () => this.#succeed(),
      () => (this.#isFailing = true),
    );
    this.#isChecking = false;
  }
}
