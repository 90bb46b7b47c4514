/**
 * Several processes that listen on one address (node:cluster). If one dies, only its own connections are
 * lost, and another one replaces it.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { inheritedSockets, reserve } from '../../http/server/listen.ts';
import { storageFailureStatus } from '../errors.ts';
import { failWith } from '../output.ts';
import type { ServeOptions } from './options.ts';

/** A worker that dies is replaced after this time, so that a crash loop stays slow. */
const restartDelayMs = 1_000;

/**
 * Starts workers that run this same command, and replaces those that die until `stop` is aborted. Resolves with the
 * address once the first one listens, or with undefined if it failed; it has then reported why.
 */
export async function startWorkers(
  { workers, ...where }: ServeOptions,
  stop: AbortController,
  log: Logger,
): Promise<AddressInfo | undefined> {
  // Here, so that no other service takes the address while a worker is being replaced.
  const { host, port, lock } = await reserve(where);
  stop.signal.addEventListener('abort', () => lock.forEach((one) => one.close()));
  cluster.setupPrimary({
    args: [...process.argv.slice(2), `--host=${host}`, `--port=${port}`],
    stdio: ['inherit', 'inherit', 'inherit', ...inheritedSockets(), 'ipc'],
  });
  const first = cluster.fork();
  const address = await Promise.race([
    once(first, 'message').then(([message]) => message as AddressInfo), // as serve.ts sends it
    once(first, 'exit').then(() => undefined),
  ]);
  if (address === undefined) return undefined;
  watch(first, stop, log);
  for (let more = 1; more < workers; more++) startWorker(stop, log);
  return address;
}

/** Lets every worker finish its requests. Resolves when all have exited: false if one was killed. */
export async function stopWorkers(): Promise<boolean> {
  const exits = Object.values(cluster.workers ?? {}).map(async (worker) => {
    if (worker?.process.pid === undefined || worker.isDead()) return undefined;
    const exited = once(worker, 'exit');
    worker.process.kill('SIGTERM');
    const [, signal] = await exited;
    return signal;
  });
  return !(await Promise.all(exits)).includes('SIGKILL');
}

function startWorker(stop: AbortController, log: Logger): void {
  if (stop.signal.aborted) return;
  try {
    watch(cluster.fork(), stop, log);
  } catch (err) {
    log.error({ err }, 'worker failed');
    startLater(stop, log);
  }
}

function watch(worker: Worker, stop: AbortController, log: Logger): void {
  worker.once('exit', (code, signal) => {
    const level = stop.signal.aborted ? 'info' : 'error';
    log[level]({ worker: worker.process.pid, code, signal }, 'worker exited');
    if (code === storageFailureStatus) {
      failWith(code); // all workers share the database, and this one has reported the cause
      stop.abort();
    }
    startLater(stop, log);
  });
  worker.on('error', (err) => {
    log.error({ err, worker: worker.process.pid }, 'worker failed');
    // A worker that never started emits no `exit`.
    if (worker.process.pid === undefined) startLater(stop, log);
  });
}

function startLater(stop: AbortController, log: Logger): void {
  // If all workers have died, only this timer keeps the process running.
  void wait(restartDelayMs, undefined, { signal: stop.signal }).then(
    () => startWorker(stop, log),
    () => {}, // it was aborted
  );
}
