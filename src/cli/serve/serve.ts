import cluster from 'node:cluster';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import type { AppOptions } from '../../http/app.ts';
import type { Limits } from '../../http/auth/request-limits.ts';
import { lacksOpenFiles, maxConnections } from '../../http/limits.ts';
import { listen, listenAlone } from '../../http/server/listen.ts';
import { createRetention } from '../../log/retention.ts';
import { lastBackupAt } from '../../sqlite/backup-folder.ts';
import { openPost } from '../../webhooks/networks.ts';
import { createSender } from '../../webhooks/sender.ts';
import { isProblem } from '../../problem.ts';
import { StorageFailure } from '../../refusal.ts';
import { TokenBuckets } from '../../shared/token-buckets.ts';
import type { Storage } from '../../storage.ts';
import { tlsServerFactory } from './certificate.ts';
import { claimFolder, makeBackups } from './backups.ts';
import { announce, refuseListenError } from './listening.ts';
import type { ServeOptions } from './options.ts';
import { isFile, openStorage } from '../database.ts';
import { createLog } from './log.ts';
import { pageSignOn, startVerifier } from './oidc.ts';
import { causeOf, refuseMissing } from '../errors.ts';
import { failWith } from '../output.ts';
import { onSignal } from '../signals.ts';
import { answerPrimary, serveMetrics } from './metrics.ts';
import { startWorkers, stopWorkers } from './workers.ts';

/** A service from its start to its end. */
interface Run {
  options: ServeOptions;
  /** Aborted when the service has to stop. */
  stop: AbortController;
  log: Logger;
  /** Why the storage cannot be used any more. */
  failure?: unknown;
}

/**
 * Serves until a termination signal, such as SIGTERM, or until the storage fails (StorageFailure). Then:
 * 1. `stop` is aborted: /readyz returns 503, and the shutdown timeout starts.
 * 2. A primary sends SIGTERM to its workers, and each of them does the rest.
 * 3. The drain stops listening and waits for the requests in progress (http/server/drain.ts).
 * 4. The app closes.
 * 5. `await using` closes the connection to Redis. Then it disposes the storage, which waits for pending writes and
 *    closes files or connections.
 * 6. A worker disconnects from its primary, so that it exits. After a failure, StorageFailure sets the status.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const log = createLog(options.logLevel);
  const stop = new AbortController();
  stop.signal.addEventListener('abort', () => startShutdownTimeout(log));
  const run: Run = { options, stop, log };
  try {
    // A primary needs no server, but it refuses a wrong certificate before it creates a database.
    const createServer = await tlsServerFactory(options, log, stop.signal);
    if (cluster.isPrimary) claimFolder(options);
    if (cluster.isPrimary && options.workers > 1) await serveWithWorkers(run);
    else await serveInProcess(run, createServer);
  } finally {
    cluster.worker?.disconnect(); // the channel to the primary would keep a worker alive
  }
  const { failure } = run;
  if (failure !== undefined) throw new StorageFailure(causeOf(failure), { cause: failure });
}

/** The drain takes at most 10 seconds (drain.ts); the rest is for closing the storage. */
export const maxShutdownMs = 15_000;

/**
 * Kills the process and its workers if shutting down takes too long, for example because a disk hangs. SIGKILL shows a
 * service manager that the shutdown failed, and `process.exit()` would wait for the hanging thread.
 */
function startShutdownTimeout(log: Logger): void {
  setTimeout(() => {
    log.error('shutdown timed out');
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
    process.kill(process.pid, 'SIGKILL');
  }, maxShutdownMs).unref();
}

async function serveInProcess(run: Run, createServer: AppOptions['createServer']): Promise<void> {
  const { options, stop, log } = run;
  await using storage = await openForServing(run);
  const { buildApp } = await import('../../http/app.ts'); // here, because a primary does not need it
  const { webhookNetworks, backupDir } = options;
  const webhooks = webhookNetworks && createSender(storage, openPost(webhookNetworks), log);
  if (lacksOpenFiles) log.warn({ connections: maxConnections }, 'few open files allowed');
  await using connections = new AsyncDisposableStack();
  const app = buildApp({
    createServer,
    storage,
    log,
    baseUrl: options.baseUrl ?? '',
    corsOrigins: options.corsOrigin ?? [],
    limits: await openLimits(run, connections),
    webhooks,
    verifier: await startVerifier(options, log),
    signOn: pageSignOn(options),
    lastBackup: backupDir === undefined ? undefined : () => lastBackupAt(backupDir),
    logRequests: options.logRequests,
    stopping: stop.signal,
  });
  app.server.keepAliveTimeout = options.keepAlive;
  await app.ready();
  const { worker } = cluster;
  const listening =
    worker === undefined ? listenAlone(app.server, options) : listen(app.server, options);
  const sockets = await listening.catch(refuseListenError(options));
  const background = [
    removeOldChanges(storage, run),
    webhooks?.run(stop.signal) ?? Promise.resolve(),
    cluster.isPrimary ? makeBackups(options, log, stop.signal) : Promise.resolve(),
  ];

  try {
    storage.warmUp?.();
    const address = app.server.address() as AddressInfo; // it listens on a port
    if (worker === undefined) {
      connections.use(await serveMetrics(options, storage));
      await announce(address, storage, options, log);
    } else {
      answerPrimary(worker, storage);
      worker.send(address);
    }
    if (!stop.signal.aborted) await once(stop.signal, 'abort');
  } finally {
    log.info('stopping');
    stop.abort();
    await app.drain(sockets);
    await app.close();
    await Promise.all(background);
    log.info('stopped');
  }
}

/** Opens the connection to Redis, if there is one. It closes when `connections` are disposed. */
async function openLimits(
  { options, log }: Run,
  connections: AsyncDisposableStack,
): Promise<Limits> {
  const { rateLimit: rate, rateLimitRedis: redis, authFailureLimit } = options;
  const limits: Limits = {
    authFailures: authFailureLimit === 'off' ? undefined : authFailureLimit,
    maxRequestsInProgress: options.maxRequestsInProgress,
    trustedProxies: options.trustProxy,
  };
  if (rate === 'off') return limits;
  if (redis === undefined) return { ...limits, requests: new TokenBuckets(rate) };
  const { RedisRateLimiter } = await import('../../redis/rate-limiter.ts').catch(
    refuseMissing('@redis/client'),
  );
  return {
    ...limits,
    requests: connections.use(await RedisRateLimiter.connect(redis, rate, log)),
  };
}

/** Until the service has to stop. */
async function removeOldChanges(storage: Storage, { options, stop, log }: Run): Promise<void> {
  const retention = createRetention(storage.log, {
    keepMs: options.keepChanges,
    processes: options.workers,
    onClockAhead: (ms) =>
      log.warn(
        { ahead: `${Math.round(ms / 3_600_000)}h` },
        'the clock is ahead of the last use of the database; if it is wrong, correct it: old changes are removed in 24 hours',
      ),
    onError: (err) => {
      // Requests report these too.
      if (isProblem(err, 'storage-unavailable') || isProblem(err, 'storage-full')) return;
      log.error({ err }, 'removing old changes failed');
    },
  });
  await retention.run(stop.signal);
}

async function serveWithWorkers(run: Run): Promise<void> {
  const { options, stop, log } = run;
  using connections = new DisposableStack();
  let backups: Promise<void> | undefined;
  try {
    {
      // The primary opens the storage first, so that only one process migrates it or reports a failure.
      await using storage = await openForServing(run);
      const address = await startWorkers(options, stop, log).catch(refuseListenError(options));
      if (stop.signal.aborted) return;
      if (address === undefined) return failWith(1); // the first worker has reported the cause
      connections.use(await serveMetrics(options));
      await announce(address, storage, options, log);
    }
    backups = makeBackups(options, log, stop.signal);
    if (!stop.signal.aborted) await once(stop.signal, 'abort');
  } finally {
    stop.abort();
    if (!(await stopWorkers())) failWith(1);
    await backups;
  }
}

/** Does not wait for a database server, which can start after the service. */
async function openForServing(run: Run): Promise<Storage> {
  const { options, stop, log } = run;
  const { database, maxPlantsPerUser: perUser, maxPlantsPerStore: perStore, keepChanges } = options;
  const stopOnSignals = () => onSignal(() => stop.abort());
  // Upgrading a file can block this thread for minutes, and no signal handler would run. Without one, a signal
  // ends the process immediately.
  if (!isFile(database)) stopOnSignals();
  const storage = await openStorage(database, {
    // A worker must not replace a lost file with an empty one. A database server can start after the primary has closed
    // its storage.
    create: cluster.isPrimary || !isFile(database),
    canBeUnavailable: true,
    quotas: { perUser, perStore },
    keepChangesMs: keepChanges,
    onLongWait: () => log.warn('database locked'),
    onFailure(err) {
      run.failure ??= err;
      log.error({ err }, 'storage failed');
      stop.abort();
    },
    onServerFault(server, err) {
      if (err === undefined) log.info({ server }, 'database server available');
      else log.warn({ err, server }, 'database server unavailable');
    },
    onRival(server) {
      if (server === undefined) log.info('other primary gone');
      else log.error({ server }, 'other primary accepts writes');
    },
  });
  if (isFile(database)) stopOnSignals();
  return storage;
}
