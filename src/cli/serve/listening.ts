/**
 * What `serve` says once it listens: its address, its database, and how to get in; or why it cannot listen.
 */
import { isIPv6, type AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { firstScopes } from '../../access/access.ts';
import type { Where } from '../../http/server/listen.ts';
import { Problem } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import type { Storage } from '../../storage.ts';
import { isEmpty, printToken } from '../admin/tokens.ts';
import { databaseOption, displayName } from '../database.ts';
import { io, print } from '../output.ts';
import type { ServeOptions } from './options.ts';

/** A database server, or a node of a cluster, can start later, so its failure is only reported. */
export async function announce(
  { address, port }: Pick<AddressInfo, 'address' | 'port'>,
  storage: Storage,
  options: ServeOptions,
  log: Logger,
): Promise<void> {
  const service = { ...options, host: address, port };
  const [url, database] = [urlOf(service), displayName(options.database)];
  print(`Plant Store listens on ${url}\nDatabase: ${database}`);
  await printAdvice(storage, service).catch((error: unknown) => {
    if (!(error instanceof Problem)) throw error;
    print('The database is not ready yet. Until it is, requests can get 503.');
    log.warn({ err: error.cause ?? error }, 'database not ready');
  });
  log.info({ address: url, database, workers: options.workers }, 'listening');
}

/** Rejects with a Problem if the database cannot be read yet. */
async function printAdvice(storage: Storage, service: ServeOptions): Promise<void> {
  const isFirst = await isEmpty(storage);
  if (isFirst && io.stdout.isTTY) return printLink(storage, pageUrl(service));
  if (isFirst) print('There is no token yet. Create the first one:');
  else if (io.stdout.isTTY) {
    print(`Open ${pageUrl(service)} in a browser and enter a token. To create one:`);
  } else return;
  const database = shellQuoted(databaseOption(service.database));
  print(`  npx plant-store token create ${isFirst ? 'alice' : 'admin'} --database ${database}`);
}

/** The fragment of a link stays in the browser: no server and no log receives the token. */
async function printLink(storage: Storage, url: string): Promise<void> {
  const { token, id } = await storage.identity.createToken({
    store: 'main',
    user: 'admin',
    role: 'manager',
    scopes: firstScopes,
    label: 'first token',
    createdAtMs: Date.now(),
  });
  const about = 'It contains the first token (user admin, role manager) and is not shown again:';
  const link = `${url}#token=${token}`;
  await printToken(id, `Open this link in a browser. ${about}\n  ${link}`, () =>
    storage.identity.revokeToken(id, Date.now()),
  );
}

/** Where a browser finds the page. A browser cannot open an address that means "all addresses of this machine". */
function pageUrl(service: ServeOptions): string {
  const { baseUrl, host } = service;
  if (baseUrl !== undefined) return `${baseUrl}/`;
  const reachable: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return `${urlOf({ ...service, host: reachable[host] ?? host })}/`;
}

function urlOf({ tlsCert, host, port }: ServeOptions): string {
  return `${tlsCert === undefined ? 'http' : 'https'}://${hostAndPort(host, port)}`;
}

export function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** The text as one word of a command. Plain text stays as it is. */
function shellQuoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

const listenErrors: Record<string, string> = {
  EADDRINUSE: 'the port is in use. Choose another with --port, or 0 for a free one',
  EACCES: 'permission denied. Choose a port above 1023 with --port',
  EADDRNOTAVAIL: 'this machine does not have that address. Choose another with --host',
  EAI_AGAIN: 'the host name cannot be resolved. Choose another with --host',
  ENOTFOUND: 'the host name cannot be resolved. Choose another with --host',
};

/** Returns a handler for a failure to listen, which refuses for these reasons. The options begin with `flags`. */
export function refuseListenError({ host, port }: Where, flags = '--') {
  return (cause: NodeJS.ErrnoException): never => {
    const reason = listenErrors[cause.code ?? '']?.replace('--', flags);
    if (reason === undefined) throw cause;
    throw new Refusal(`Cannot listen on ${hostAndPort(host, port)}: ${reason}.`, { cause });
  };
}
