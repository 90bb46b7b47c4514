import cluster from 'node:cluster';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import type { AppOptions } from '../../http/app.ts';
import { createDrain } from '../../http/server/drain.ts';
import { listen } from '../../http/server/listen.ts';
import type { OidcOptions, PageSignOn } from '../../oidc/options.ts';
import type { Verifier } from '../../oidc/verifier.ts';
import { Problem } from '../../problem.ts';
import { DiskFailure, Refusal, UsageError } from '../../refusal.ts';
import type { Storage } from '../../storage.ts';
import { announce, hostAndPort, urlOf } from './announce.ts';
import type { ServeOptions } from './options.ts';
import { displayName, isFile, openStorage } from '../database.ts';
import { checkLimits, openLimits } from './rate-limits.ts';
import { createLog } from './log.ts';
import { oidcOptions, pageSignOn } from './oidc.ts';
import { failWith, print } from '../output.ts';
import { diskFailureStatus } from '../errors.ts';
import { onSignal, startShutdownTimeout } from '../signals.ts';
import { Workers } from './workers.ts';

/** A service from its start to its end. */
interface Run {
  options: ServeOptions;
  /** Aborted when the service has to stop. */
  stop: AbortController;
  log: Logger;
}

/**
 * Serves until a termination signal, such as SIGTERM, or until a commit fails on the disk. Then:
 * 1. `stop` is aborted: /readyz returns 503, and each connection closes with its next response.
 * 2. The shutdown timeout starts. A primary sends SIGTERM to its workers, and each of them does the rest.
 * 3. The drain stops listening and waits for the requests in progress (http/server/drain.ts).
 * 4. The app closes.
 * 5. `await using` closes the connection to Redis. Then it disposes the storage, which waits for pending writes and
 *    closes files or connections.
 * 6. A worker disconnects from its primary, so that it exits. After a disk failure, DiskFailure sets the status.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const run = { options, stop: new AbortController(), log: createLog(options.logLevel) };
  checkLimits(options);
  try {
    // The primary of workers checks all of them too.
    const createServer = await serverFactory(run);
    const [oidc, signOn] = [oidcOptions(options), pageSignOn(options)];
    if (cluster.isPrimary && options.workers > 1) await serveWithWorkers(run);
    else await serveInProcess(run, createServer, oidc, signOn);
  } finally {
    cluster.worker?.disconnect(); // the channel to the primary would keep a worker alive
  }
}

/** Returns undefined for plain HTTP. */
async function serverFactory({ options, stop, log }: Run): Promise<AppOptions['createServer']> {
  const { tlsCert: cert, tlsKey: key } = options;
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) {
    throw new UsageError('Set both --tls-cert and --tls-key for HTTPS, or neither for plain HTTP.');
  }
  const { tlsServerFactory } = await import('./certificate.ts');
  return tlsServerFactory({ cert, key }, { log, stopping: stop.signal });
}

async function serveInProcess(
  run: Run,
  createServer: AppOptions['createServer'],
  oidc: OidcOptions | undefined,
  signOn: PageSignOn | undefined,
): Promise<void> {
  const { options, stop, log } = run;
  let hasDiskFailed = false;
  const onDiskFailure = (err: unknown) => {
    hasDiskFailed = true;
    log.error({ err }, 'disk failed');
    stop.abort();
  };
  await using storage = await openForServing(run, onDiskFailure);
  const { buildApp } = await import('../../http/app.ts'); // here, because a primary does not need it
  await using connections = new AsyncDisposableStack();
  const limits = await openLimits(options, connections, log);
  const verifier = oidc && (await startVerifier(oidc, log));
  const app = buildApp({
    storage,
    log,
    baseUrl: options.baseUrl ?? '',
    corsOrigins: options.corsOrigin ?? [],
    verifier,
    signOn,
    limits,
    createServer,
    stopping: stop.signal,
  });
  const drain = createDrain(app.server);
  await app.ready();
  const { worker } = cluster;
  const isFirst = worker === undefined || worker.id === 1;
  const sockets = await listen(app.server, options, isFirst).catch(refuseListenError(options));

  try {
    const address = app.server.address() as AddressInfo; // it listens on a port
    if (worker === undefined) await announceAt(address, storage, run);
    else worker.send(address);
    if (!stop.signal.aborted) await once(stop.signal, 'abort');
  } finally {
    log.info('stopping');
    stop.abort();
    startShutdownTimeout(log);
    await drain(sockets);
    await app.close();
    log.info('stopped');
  }
  if (hasDiskFailed) {
    throw new DiskFailure(
      'The disk reported an error during a write, so the service stopped. ' +
        'Acknowledged changes are kept. Check the disk, then start the service again.',
    );
  }
}

/** Does not wait for the identity provider, which can start after the service. */
async function startVerifier(oidc: OidcOptions, log: Logger): Promise<Verifier> {
  const { Verifier } = await import('../../oidc/verifier.ts'); // loads jose
  let isAvailable: boolean | undefined;
  let reported = '';
  const verifier = new Verifier(oidc, (err, keys) => {
    if (keys.length > 0 && reported !== keys.join()) {
      reported = keys.join();
      log.warn({ issuer: oidc.issuer, keys }, 'unusable identity provider keys');
    }
    if (isAvailable === (err === undefined)) return;
    isAvailable = err === undefined;
    if (isAvailable) log.info({ issuer: oidc.issuer }, 'identity provider available');
    else log.warn({ err, issuer: oidc.issuer }, 'identity provider unavailable');
  });
  verifier.start();
  return verifier;
}

async function serveWithWorkers(run: Run): Promise<void> {
  const { stop, log } = run;
  const workers = new Workers(log, stop.signal, () => {
    failWith(diskFailureStatus); // the worker has reported the cause
    stop.abort();
  });
  try {
    const areRunning = await startWorkers(workers, run);
    if (!stop.signal.aborted) {
      if (areRunning) await once(stop.signal, 'abort');
      else failWith(1); // the first worker has reported the cause
    }
  } finally {
    stop.abort();
    startShutdownTimeout(log, 2_000); // later than those of the workers
    if (!(await workers.stop())) failWith(1);
  }
}

/** Returns false if they could not start. */
async function startWorkers(workers: Workers, run: Run): Promise<boolean> {
  const { options } = run;
  // The primary opens the storage first, so that only one process migrates it or reports a failure.
  await using storage = await openForServing(run);
  const address = await workers
    .start(options.workers, options.host, options.port)
    .catch(refuseListenError(options));
  if (address !== undefined) await announceAt(address, storage, run);
  return address !== undefined;
}

/** A database server can start later, so its failure is only reported. */
async function announceAt(
  { address, port }: Pick<AddressInfo, 'address' | 'port'>,
  storage: Storage,
  { options, log }: Run,
): Promise<void> {
  const service = { ...options, host: address, port };
  await announce(storage, service).catch((error: unknown) => {
    if (!(error instanceof Problem)) throw error;
    print('The database is not ready yet. Until it is, requests get 503.');
    log.warn({ err: error.cause ?? error }, 'database not ready');
  });
  const { workers, database } = options;
  const listening = { address: urlOf(service), database: displayName(database), workers };
  log.info(listening, 'listening');
}

/** Does not wait for a database server, which can start after the service. */
async function openForServing(
  { options, stop, log }: Run,
  onDiskFailure?: (cause: unknown) => void,
): Promise<Storage> {
  const { database, maxPlantsPerUser: perUser, maxPlantsPerStore: perStore } = options;
  const onFileFault = (err: Refusal | undefined) => {
    if (err === undefined) log.info('database file found again');
    else if (err.kind === 'newer-schema') log.error({ err }, 'database upgraded');
    else log.error({ err }, 'database file lost');
  };
  const onLongWait = () => log.warn('database locked');
  const onServerFault = (server: string, err: unknown) => {
    if (err === undefined) log.info({ server }, 'database server available');
    else log.warn({ err, server }, 'database server unavailable');
  };
  // Upgrading a file can block this thread for minutes, and no signal handler would run. Without one, a signal
  // ends the process immediately.
  if (!isFile(database)) stopOnSignals(stop);
  const storage = await openStorage(database, {
    create: true,
    canBeUnavailable: true,
    quotas: { perUser, perStore },
    onLongWait,
    onFileFault,
    onServerFault,
    onDiskFailure,
  });
  if (isFile(database)) stopOnSignals(stop);
  return storage;
}

/** A terminal sends Ctrl-C to npm too, which forwards it: within this time, it counts as the same signal. */
const duplicateSignalMs = 1_000;

/** The first signal stops the service gracefully; a second one ends the process immediately. */
function stopOnSignals(stop: AbortController): void {
  let firstMs: number | undefined;
  const signals = onSignal((signal) => {
    firstMs ??= performance.now();
    stop.abort();
    if (performance.now() - firstMs <= duplicateSignalMs) return;
    signals[Symbol.dispose]();
    process.kill(process.pid, signal); // process.exit() would wait for the writer thread
  });
}

function refuseListenError({ host, port }: ServeOptions) {
  return (error: NodeJS.ErrnoException): never => {
    const reasons: Record<string, string> = {
      EADDRINUSE: 'the port is in use. Choose another with --port, or 0 for a free one',
      EACCES: 'permission denied. Choose a port above 1023 with --port',
      EADDRNOTAVAIL: 'this machine does not have that address. Choose another with --host',
      EAI_AGAIN: 'the host name cannot be resolved. Choose another with --host',
      ENOTFOUND: 'the host name cannot be resolved. Choose another with --host',
    };
    const reason = reasons[error.code ?? ''];
    if (reason === undefined) throw error;
    throw new Refusal(`Cannot listen on ${hostAndPort(host, port)}: ${reason}.`);
  };
}
