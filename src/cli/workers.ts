/**
 * Several processes that listen on one address (node:cluster): one that dies costs only its own
 * connections, and another takes its place.
 */
import cluster, { type Address, type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { diskFailureStatus } from './reason.ts';

/** One that dies sooner is not replaced at once: it would die again, as fast as the machine allows. */
const soonMs = 1_000;

export class Workers {
  readonly #log: Logger;
  readonly #stopping: AbortSignal;
  readonly #onDiskFailure: () => void;

  /** `onDiskFailure` is called if a worker ended because of the disk that all of them share. */
  constructor(log: Logger, stopping: AbortSignal, onDiskFailure: () => void) {
    this.#log = log;
    this.#stopping = stopping;
    this.#onDiskFailure = onDiskFailure;
  }

  /**
   * Starts this very command as so many workers. Resolves once the first one listens, to where; to
   * undefined where it could not, and has said why.
   */
  async start(count: number, host: string, port: number): Promise<Address | undefined> {
    // Not 0 for each: where all workers die at once, those after them would listen elsewhere.
    const chosen = port === 0 ? await freePort(host) : port;
    cluster.setupPrimary({ args: [...process.argv.slice(2), `--port=${chosen}`] });
    const first = cluster.fork();
    const address = await Promise.race([
      once(first, 'listening').then(([listening]) => listening as Address), // as documented
      once(first, 'exit').then(() => undefined),
    ]);
    if (address === undefined) return undefined;
    this.#keep(first);
    for (let more = 1; more < count; more++) this.#add();
    return address;
  }

  /** Lets every worker end what it has begun. Resolves when none is left: true if none was killed. */
  async stop(): Promise<boolean> {
    const workers = Object.values(cluster.workers ?? {}).filter(
      (worker) => worker?.process.pid !== undefined && !worker.isDead(),
    );
    const killed = await Promise.all(
      workers.map(async (worker) => {
        const ended = new Promise<boolean>((resolve) => {
          worker?.once('exit', (_code, signal) => resolve(signal === 'SIGKILL'));
        });
        worker?.process.kill('SIGTERM');
        return ended;
      }),
    );
    return !killed.includes(true);
  }

  #add(): void {
    if (this.#stopping.aborted) return;
    try {
      this.#keep(cluster.fork());
    } catch (err) {
      this.#failed(err);
    }
  }

  #keep(worker: Worker): void {
    const startedMs = performance.now();
    worker.once('exit', (code, signal) => {
      const level = this.#stopping.aborted ? 'info' : 'error';
      this.#log[level]({ worker: worker.process.pid, code, signal }, 'worker ended');
      if (code === diskFailureStatus) return this.#onDiskFailure();
      const isSoon = performance.now() - startedMs < soonMs;
      // Not a timer that lets the process end: where all workers have died, nothing else holds it.
      setTimeout(() => this.#add(), isSoon ? soonMs : 0);
    });
    worker.on('error', (err) => {
      if (worker.process.pid === undefined)
        this.#failed(err); // it has never been, so it does not exit
      else this.#log.error({ err, worker: worker.process.pid }, 'worker failed');
    });
  }

  #failed(err: unknown): void {
    this.#log.error({ err }, 'worker not started');
    setTimeout(() => this.#add(), soonMs);
  }
}

/** A port that nobody listens on now. */
async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  server.close();
  await once(server, 'close');
  return port;
}
