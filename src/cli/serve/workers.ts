/**
 * Several processes that listen on one address (node:cluster). If one dies, only its own connections are
 * lost, and another one replaces it.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { findFreePort } from '../../http/server/listen.ts';
import { diskFailureStatus } from '../errors.ts';

/** A worker that dies within this time is replaced only after it, so that a crash loop stays slow. */
const restartDelayMs = 1_000;

export class Workers {
  readonly #log: Logger;
  readonly #stopping: AbortSignal;
  readonly #onDiskFailure: () => void;

  /** `onDiskFailure` is called if a worker exits because the disk, which all of them share, failed. */
  constructor(log: Logger, stopping: AbortSignal, onDiskFailure: () => void) {
    this.#log = log;
    this.#stopping = stopping;
    this.#onDiskFailure = onDiskFailure;
  }

  /**
   * Starts `count` workers that run this same command. Resolves with the address once the first one listens, or
   * with undefined if it failed; it has then reported why.
   */
  async start(count: number, host: string, port: number): Promise<AddressInfo | undefined> {
    // Workers cannot use port 0: if all of them died, their replacements would listen on another port.
    const actualPort = port === 0 ? await findFreePort(host, port) : port;
    cluster.setupPrimary({ args: [...process.argv.slice(2), `--port=${actualPort}`] });
    const first = cluster.fork();
    const address = await Promise.race([
      once(first, 'message').then(([message]) => message as AddressInfo), // as serve.ts sends it
      once(first, 'exit').then(() => undefined),
    ]);
    if (address === undefined) return undefined;
    this.#watch(first);
    for (let more = 1; more < count; more++) this.#startWorker();
    return address;
  }

  /** Lets every worker finish its requests. Resolves when all have exited: false if one was killed. */
  async stop(): Promise<boolean> {
    const exits = Object.values(cluster.workers ?? {}).map(async (worker) => {
      if (worker?.process.pid === undefined || worker.isDead()) return undefined;
      const exited = once(worker, 'exit');
      worker.process.kill('SIGTERM');
      const [, signal] = await exited;
      return signal;
    });
    return !(await Promise.all(exits)).includes('SIGKILL');
  }

  #startWorker(): void {
    if (this.#stopping.aborted) return;
    try {
      this.#watch(cluster.fork());
    } catch (err) {
      this.#retryLater(err);
    }
  }

  #watch(worker: Worker): void {
    const startedMs = performance.now();
    worker.once('exit', (code, signal) => {
      const level = this.#stopping.aborted ? 'info' : 'error';
      this.#log[level]({ worker: worker.process.pid, code, signal }, 'worker exited');
      if (code === diskFailureStatus) return this.#onDiskFailure();
      const isEarly = performance.now() - startedMs < restartDelayMs;
      // Not unref(): if all workers have died, only this timer keeps the process running.
      setTimeout(() => this.#startWorker(), isEarly ? restartDelayMs : 0);
    });
    worker.on('error', (err) => {
      // A worker that never started emits no `exit`.
      if (worker.process.pid === undefined) this.#retryLater(err);
      else this.#log.error({ err, worker: worker.process.pid }, 'worker failed');
    });
  }

  #retryLater(err: unknown): void {
    this.#log.error({ err }, 'worker failed to start');
    setTimeout(() => this.#startWorker(), restartDelayMs);
  }
}
