import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { buildApp } from '../http/app.ts';
import { drainOf } from '../http/drain.ts';
import { scopes } from '../access.ts';
import { SqliteStorage } from '../sqlite/storage.ts';
import { StorageRefusal, type Storage } from '../storage.ts';
import { addToken } from './token.ts';

interface ServeOptions {
  /** Path of the database file. */
  database: string;
  host: string;
  port: number;
  baseUrl: string;
  logLevel: string;
}

/** Serves until SIGTERM or SIGINT, then answers what it has accepted and returns. */
export async function serve(options: ServeOptions): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());

  // People read standard output; the log goes to standard error, a line of JSON for each entry.
  const log = pino({ level: options.logLevel }, pino.destination(2));
  await using storage = new SqliteStorage(options.database, { create: true });
  const app = buildApp({ storage, log, baseUrl: options.baseUrl, stopping: stop.signal });
  const drain = drainOf(app.server);
  await app.listen({ host: options.host, port: options.port }).catch(refuseAddress(options));

  const address = `http://${nameOf(app.server.address())}`;
  console.log(`Plant Store listens on ${address}`);
  console.log(`Database: ${options.database}`);
  await welcome(storage, address, options);
  log.info({ address, database: options.database }, 'listening');

  if (!stop.signal.aborted) await once(stop.signal, 'abort');
  log.info('stopping');
  await drain();
  await app.close();
  log.info('stopped');
}

/** Without a token nobody can call: makes the first one for who sits there, or says how. */
async function welcome(storage: Storage, address: string, options: ServeOptions): Promise<void> {
  if ((await storage.listTokens({ limit: 1 })).length > 0) return;
  if (!process.stdout.isTTY) {
    console.log('There is no token yet. Make the first one:');
    const database = quoted(`sqlite:${options.database}`);
    console.log(`  npx plant-store token create alice --database ${database}`);
    return;
  }
  const token = await addToken(storage, 'admin', {
    store: 'main',
    role: 'manager',
    scope: scopes,
    label: 'first token',
  });
  console.log(`The first token, for the manager admin; it is not shown again:\n  ${token}`);
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

function nameOf(address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') return String(address);
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
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
    throw new StorageRefusal(`Cannot listen on ${host} port ${port}: ${reason}.`);
  };
}
