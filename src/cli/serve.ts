import cluster from 'node:cluster';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { pino, type Logger } from 'pino';
import { createDrain } from '../http/drain.ts';
import { scopes } from '../access.ts';
import { Problem } from '../problem.ts';
import { DiskFailure, Refusal } from '../refusal.ts';
import type { Storage } from '../storage.ts';
import { messageOf } from './advice.ts';
import { databaseOption, displayName, isFile, openStorage } from './database.ts';
import { diskFailureStatus } from './reason.ts';
import { startShutdownTimeout } from './shutdown-timeout.ts';
import { terminationSignals } from './signals.ts';
import { addToken, printToken } from './token.ts';
import { Workers } from './workers.ts';

interface ServeOptions {
  database: string;
  host: string;
  port: number;
  baseUrl: string;
  /** Number of processes. */
  workers: number;
  logLevel: string;
}

/**
 * Serves until a termination signal, such as SIGTERM, or until a commit fails on the disk. Then:
 * 1. `stop` is aborted: /readyz returns 503, and each connection closes with its next response.
 * 2. The shutdown timeout starts. A primary sends SIGTERM to its workers, and each of them does the rest.
 * 3. The drain stops listening and waits for the requests in progress (http/drain.ts).
 * 4. The app closes.
 * 5. `await using` disposes the storage: it waits for pending writes, then closes files or connections.
 * 6. A worker disconnects from its primary, so that it exits. After a disk failure, DiskFailure sets the status.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const stop = new AbortController();
  // Standard output is for people. The log goes to standard error, one line of JSON per entry.
  process.stderr.on('error', () => {}); // losing the log must not stop the service
  const log = pino(
    { level: options.logLevel, serializers: { err: serializeError } },
    process.stderr,
  );
  try {
    if (cluster.isPrimary && options.workers > 1) await serveWithWorkers(options, stop, log);
    else await serveInProcess(options, stop, log);
  } finally {
    cluster.worker?.disconnect(); // the channel to the primary would keep a worker alive
  }
}

/** Adds to a refusal in the log what to do about it, as on the terminal. */
const serializeError = pino.stdSerializers.wrapErrorSerializer((entry) => {
  const { raw } = entry;
  if (raw instanceof Refusal) entry.message = entry.message.replace(raw.message, messageOf(raw));
  return entry;
});

async function serveInProcess(
  options: ServeOptions,
  stop: AbortController,
  log: Logger,
): Promise<void> {
  let hasDiskFailed = false;
  const onDiskFailure = (err: unknown) => {
    hasDiskFailed = true;
    log.error({ err }, 'disk failed');
    stop.abort();
  };
  await using storage = await openForServing(options, stop, log, onDiskFailure);
  const { buildApp } = await import('../http/app.ts'); // here, because a primary does not need it
  const app = buildApp({ storage, log, baseUrl: options.baseUrl, stopping: stop.signal });
  const drain = createDrain(app.server);
  await app.listen({ host: options.host, port: options.port }).catch(refuseListenError(options));

  try {
    if (cluster.isPrimary) await announce(storage, urlOf(app.server.address()), options, log);
    if (!stop.signal.aborted) await once(stop.signal, 'abort');
  } finally {
    log.info('stopping');
    stop.abort();
    startShutdownTimeout(log);
    await drain();
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

async function serveWithWorkers(
  options: ServeOptions,
  stop: AbortController,
  log: Logger,
): Promise<void> {
  const workers = new Workers(log, stop.signal, () => {
    process.exitCode = diskFailureStatus; // the worker has reported the cause
    stop.abort();
  });
  try {
    const areRunning = await startWorkers(workers, options, stop, log);
    if (!stop.signal.aborted) {
      if (areRunning) await once(stop.signal, 'abort');
      else process.exitCode = 1; // the first worker has reported the cause
    }
  } finally {
    stop.abort();
    startShutdownTimeout(log, 2_000); // later than those of the workers
    if (!(await workers.stop())) process.exitCode ??= 1;
  }
}

/** Returns false if they could not start. */
async function startWorkers(
  workers: Workers,
  options: ServeOptions,
  stop: AbortController,
  log: Logger,
): Promise<boolean> {
  // The primary opens the storage first, so that only one process migrates it or reports a failure.
  await using storage = await openForServing(options, stop, log);
  const address = await workers
    .start(options.workers, options.host, options.port)
    .catch(refuseListenError(options));
  if (address !== undefined) await announce(storage, urlOf(address), options, log);
  return address !== undefined;
}

async function announce(
  storage: Storage,
  address: string,
  options: ServeOptions,
  log: Logger,
): Promise<void> {
  console.log(`Plant Store listens on ${address}`);
  const database = displayName(options.database);
  console.log(`Database: ${database}`);
  await announceFirstToken(storage, address, options).catch((error: unknown) => {
    if (!(error instanceof Problem)) throw error;
    console.log('The database is not ready yet. Until it is, requests get 503.');
    log.warn({ err: error.cause ?? error }, 'database not ready');
  });
  const { workers } = options;
  log.info({ address, database, workers }, 'listening');
}

/** Does not wait for a database server, which can start after the service. */
async function openForServing(
  { database }: ServeOptions,
  stop: AbortController,
  log: Logger,
  onDiskFailure?: (cause: unknown) => void,
): Promise<Storage> {
  const onFileFault = (err: Refusal | undefined) => {
    if (err === undefined) log.info('database file found again');
    else if (err.kind === 'newer-schema') log.error({ err }, 'database upgraded');
    else log.error({ err }, 'database file lost');
  };
  const onLongWait = () => log.warn('database locked');
  const events = { onLongWait, onFileFault, onDiskFailure };
  // Upgrading a file can block this thread for minutes, and no signal handler would run. Without one, a signal
  // ends the process immediately.
  if (!isFile(database)) stopOnSignals(stop);
  const storage = await openStorage(database, { create: true, canBeUnavailable: true, ...events });
  if (isFile(database)) stopOnSignals(stop);
  return storage;
}

/** A terminal sends Ctrl-C to npm too, which forwards it: within this time, it counts as the same signal. */
const duplicateSignalMs = 1_000;

/** The first signal stops the service gracefully; a second one ends the process immediately. */
function stopOnSignals(stop: AbortController): void {
  let firstMs: number | undefined;
  const stopOrExit = (signal: NodeJS.Signals) => {
    firstMs ??= performance.now();
    stop.abort();
    if (performance.now() - firstMs <= duplicateSignalMs) return;
    process.removeAllListeners(signal);
    process.kill(process.pid, signal); // process.exit() would wait for the writer thread
  };
  for (const signal of terminationSignals) process.on(signal, stopOrExit);
}

/** If there is no token yet, creates one if standard output is a terminal. Otherwise prints the command that does. */
async function announceFirstToken(
  storage: Storage,
  address: string,
  options: ServeOptions,
): Promise<void> {
  if ((await storage.listTokens({ limit: 1 })).length > 0) return;
  if (!process.stdout.isTTY) {
    console.log('There is no token yet. Create the first one:');
    const database = shellQuoted(databaseOption(options.database));
    console.log(`  npx plant-store token create alice --database ${database}`);
    return;
  }
  const token = await addToken(storage, 'admin', {
    store: 'main',
    role: 'manager',
    scope: scopes,
    label: 'first token',
  });
  const text = `First token (user admin, role manager). It is not shown again:\n  ${token}`;
  await printToken(storage, token, text);
  console.log('Create a plant with it:');
  console.log(
    `  curl ${address}/plants -H 'Authorization: Bearer ${token}' ` +
      `-H 'Content-Type: application/json' -d '{"name": "Monstera", "tag": "indoor"}'`,
  );
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function urlOf(address: { address: string; port: number } | string | null): string {
  if (address === null || typeof address === 'string') return `http://${address}`;
  return `http://${hostAndPort(address.address, address.port)}`;
}

function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
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
