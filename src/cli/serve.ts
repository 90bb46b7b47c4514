import cluster from 'node:cluster';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { pino, type Logger } from 'pino';
import { drainOf } from '../http/drain.ts';
import { scopes } from '../access.ts';
import { Problem } from '../problem.ts';
import { DiskFailure, Refusal } from '../refusal.ts';
import type { Storage } from '../storage.ts';
import { messageOf } from './advice.ts';
import { databaseOption, isFile, openStorage, shownDatabase } from './database.ts';
import { diskFailureStatus } from './reason.ts';
import { endingSignals } from './signals.ts';
import { killUnlessStopped } from './stop-in-time.ts';
import { addToken, showToken } from './token.ts';
import { Workers } from './workers.ts';

interface ServeOptions {
  /** Address of the storage. */
  database: string;
  host: string;
  port: number;
  baseUrl: string;
  /** Processes that answer requests. */
  workers: number;
  logLevel: string;
}

/**
 * Serves until SIGTERM, SIGINT or SIGHUP, then answers what it has accepted and returns. If the disk fails
 * a commit, it does the same and throws DiskFailure.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const stop = new AbortController();
  // People read standard output; the log goes to standard error, a line of JSON for each entry.
  process.stderr.on('error', () => {}); // a log that cannot be written must not stop the service
  const log = pino({ level: options.logLevel, serializers: { err: inLog } }, process.stderr);
  try {
    if (cluster.isPrimary && options.workers > 1) await serveByWorkers(options, stop, log);
    else await serveHere(options, stop, log);
  } finally {
    cluster.worker?.disconnect(); // its channel to the first process would keep a worker alive
  }
}

/** Who reads the log is told what to do, as who sits at the terminal is. */
const inLog = pino.stdSerializers.wrapErrorSerializer((entry) => {
  const { raw } = entry;
  if (raw instanceof Refusal) entry.message = entry.message.replace(raw.message, messageOf(raw));
  return entry;
});

async function serveHere(options: ServeOptions, stop: AbortController, log: Logger): Promise<void> {
  let hasDiskFailed = false;
  const onDiskFailure = (err: unknown) => {
    hasDiskFailed = true;
    log.error({ err }, 'disk failed');
    stop.abort();
  };
  await using storage = await opened(options, stop, log, onDiskFailure);
  const { buildApp } = await import('../http/app.ts'); // the first of several processes needs none
  const app = buildApp({ storage, log, baseUrl: options.baseUrl, stopping: stop.signal });
  const drain = drainOf(app.server);
  await app.listen({ host: options.host, port: options.port }).catch(refuseAddress(options));

  try {
    if (cluster.isPrimary) await announce(storage, nameOf(app.server.address()), options, log);
    if (!stop.signal.aborted) await once(stop.signal, 'abort');
  } finally {
    log.info('stopping');
    stop.abort();
    killUnlessStopped(log);
    await drain();
    await app.close();
    log.info('stopped');
  }
  if (hasDiskFailed) {
    throw new DiskFailure(
      'The disk reported an error while a change was stored, so the service has ended. ' +
        'What it acknowledged is kept. Look at the disk, then start it again.',
    );
  }
}

async function serveByWorkers(
  options: ServeOptions,
  stop: AbortController,
  log: Logger,
): Promise<void> {
  const workers = new Workers(log, stop.signal, () => {
    process.exitCode = diskFailureStatus; // the worker has said why
    stop.abort();
  });
  try {
    const areRunning = await startWorkers(workers, options, stop, log);
    if (!stop.signal.aborted) {
      if (areRunning) await once(stop.signal, 'abort');
      else process.exitCode = 1; // the first has said why
    }
  } finally {
    stop.abort();
    killUnlessStopped(log, 2_000); // each worker has a chance to do so before
    if (!(await workers.stop())) process.exitCode ??= 1;
  }
}

/** False where they could not start. */
async function startWorkers(
  workers: Workers,
  options: ServeOptions,
  stop: AbortController,
  log: Logger,
): Promise<boolean> {
  // A file that cannot be used is refused once, and an old schema brought up by one process.
  await using storage = await opened(options, stop, log);
  const address = await workers
    .start(options.workers, options.host, options.port)
    .catch(refuseAddress(options));
  if (address !== undefined) await announce(storage, nameOf(address), options, log);
  return address !== undefined;
}

async function announce(
  storage: Storage,
  name: string,
  options: ServeOptions,
  log: Logger,
): Promise<void> {
  const address = `http://${name}`;
  console.log(`Plant Store listens on ${address}`);
  const database = shownDatabase(options.database);
  console.log(`Database: ${database}`);
  await welcome(storage, address, options).catch((error: unknown) => {
    if (!(error instanceof Problem)) throw error;
    console.log('The database is not ready yet; until it is, requests get 503.');
    log.warn({ err: error.cause ?? error }, 'the database is not ready yet');
  });
  const { workers } = options;
  log.info({ address, database, workers }, 'listening');
}

/** A database server may still be on its way up: the service does not wait for it. */
async function opened(
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
  const onLongWait = () => log.warn('the database is locked');
  const events = { onLongWait, onFileFault, onDiskFailure };
  // A migration of a file can block this thread for minutes, in which no listener would run: until then a
  // signal ends the process by itself.
  if (!isFile(database)) stopOnSignals(stop);
  const storage = await openStorage(database, { create: true, mayBeDown: true, ...events });
  if (isFile(database)) stopOnSignals(stop);
  return storage;
}

/** npm passes on the signal of a terminal that has reached this process already: that is no second. */
const sameSignalMs = 1_000;

/** The first signal asks for the end; one that comes later ends the process at once. */
function stopOnSignals(stop: AbortController): void {
  let firstMs: number | undefined;
  const stopOrEnd = (signal: NodeJS.Signals) => {
    firstMs ??= performance.now();
    stop.abort();
    if (performance.now() - firstMs <= sameSignalMs) return;
    process.removeAllListeners(signal);
    process.kill(process.pid, signal); // process.exit() would wait for the thread that writes
  };
  for (const signal of endingSignals) process.on(signal, stopOrEnd);
}

/** Without a token nobody can call: makes the first one for who sits there, or says how. */
async function welcome(storage: Storage, address: string, options: ServeOptions): Promise<void> {
  if ((await storage.listTokens({ limit: 1 })).length > 0) return;
  if (!process.stdout.isTTY) {
    console.log('There is no token yet. Make the first one:');
    const database = quoted(databaseOption(options.database));
    console.log(`  npx plant-store token create alice --database ${database}`);
    return;
  }
  const token = await addToken(storage, 'admin', {
    store: 'main',
    role: 'manager',
    scope: scopes,
    label: 'first token',
  });
  const text = `The first token, for the manager admin; it is not shown again:\n  ${token}`;
  await showToken(storage, token, text);
  console.log('Create a plant with it:');
  console.log(
    `  curl ${address}/plants -H 'Authorization: Bearer ${token}' ` +
      `-H 'Content-Type: application/json' -d '{"name": "Monstera", "tag": "indoor"}'`,
  );
}

/** As one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function nameOf(address: { address: string; port: number } | string | null): string {
  if (address === null || typeof address === 'string') return String(address);
  const host = isIPv6(address.address) ? `[${address.address}]` : address.address;
  return `${host}:${address.port}`;
}

function refuseAddress({ host, port }: ServeOptions) {
  return (error: NodeJS.ErrnoException): never => {
    const reasons: Record<string, string> = {
      EADDRINUSE: 'another process listens there. Choose another --port, or 0 for a free one',
      EACCES: 'the system does not allow it. Choose a --port above 1023',
      EADDRNOTAVAIL: 'this machine does not have that address. Choose another --host',
      EAI_AGAIN: 'there is no such host. Choose another --host',
      ENOTFOUND: 'there is no such host. Choose another --host',
    };
    const reason = reasons[error.code ?? ''];
    if (reason === undefined) throw error;
    throw new Refusal(`Cannot listen on ${host} port ${port}: ${reason}.`);
  };
}
