/**
 * Several processes that listen on one address (node:cluster): one that dies costs only its own
 * connections, and another takes its place.
 */
import cluster, { type Address, type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Logger } from 'pino';

/** One that dies sooner is not replaced at once: it would die again, as fast as the machine allows. */
const soonMs = 1_000;

export class Workers {
  readonly #log: Logger;
  readonly #stopping: AbortSignal;

  constructor(log: Logger, stopping: AbortSignal) {
    this.#log = log;
    this.#stopping = stopping;
  }

  /**
   * Starts this very command as so many workers. Resolves once the first one listens, to where; to
   * undefined where it could not, and has said why.
   */
  async start(count: number): Promise<Address | undefined> {
    cluster.on('exit', (worker, code, signal) => {
      this.#log[this.#stopping.aborted ? 'info' : 'error'](
        { worker: worker.process.pid, code, signal },
        'worker ended',
      );
    });
    const first = cluster.fork();
    const address = await Promise.race([
      once(first, 'listening').then(([listening]) => listening as Address), // as documented
      once(first, 'exit').then(() => undefined),
    ]);
    if (address === undefined) return undefined;
    this.#keep(first);
    for (let more = 1; more < count; more++) this.#keep(cluster.fork());
    return address;
  }

  /** Lets every worker end what it has begun. Resolves when none is left. */
  async stop(): Promise<void> {
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(
      workers.map(async (worker) => {
        const ended = once(worker, 'exit');
        worker.process.kill('SIGTERM');
        await ended;
      }),
    );
  }

  #replace(): void {
    if (!this.#stopping.aborted) this.#keep(cluster.fork());
  }

  #keep(worker: Worker): void {
    const startedMs = performance.now();
    worker.once('exit', () => {
      if (this.#stopping.aborted) return;
      const livedMs = performance.now() - startedMs;
      setTimeout(() => this.#replace(), livedMs < soonMs ? soonMs : 0).unref();
    });
  }
}
