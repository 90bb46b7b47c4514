/**
 * What `serve` prints on standard output once it listens: its address, its database, and how to get in.
 */
import { isIPv6 } from 'node:net';
import { defaultScopes } from '../../access/access.ts';
import type { Storage } from '../../storage.ts';
import { databaseOption, displayName } from '../database.ts';
import { io, print } from '../output.ts';
import { printToken } from '../admin/token.ts';
import type { ServeOptions } from './options.ts';

/** `service` has the address on which it listens. Rejects with a Problem if the database cannot be read yet. */
export async function announce(storage: Storage, service: ServeOptions): Promise<void> {
  print(`Plant Store listens on ${urlOf(service)}`);
  print(`Database: ${displayName(service.database)}`);
  const isEmpty = (await storage.identity.listTokens({ limit: 1 })).length === 0;
  if (isEmpty && io.stdout.isTTY) return printLink(storage, pageUrl(service));
  if (isEmpty) print('There is no token yet. Create the first one:');
  else if (io.stdout.isTTY) {
    print(`Open ${pageUrl(service)} in a browser and enter a token. To create one:`);
  } else return;
  const database = shellQuoted(databaseOption(service.database));
  print(`  npx plant-store token create ${isEmpty ? 'alice' : 'admin'} --database ${database}`);
}

/** The fragment of a link stays in the browser: no server and no log receives the token. */
async function printLink(storage: Storage, url: string): Promise<void> {
  const { token, id } = await storage.identity.createToken({
    store: 'main',
    user: 'admin',
    role: 'manager',
    scopes: defaultScopes,
    label: 'first token',
    createdAtMs: Date.now(),
  });
  const about = 'It contains the first token (user admin, role manager) and is not shown again:';
  const link = `${url}#token=${token}`;
  await printToken(storage, id, `Open this link in a browser. ${about}\n  ${link}`);
}

/** Where a browser finds the page. A browser cannot open an address that means "all addresses of this machine". */
function pageUrl(service: ServeOptions): string {
  const { baseUrl, host } = service;
  if (baseUrl !== undefined) return `${baseUrl}/`;
  const reachable: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return `${urlOf({ ...service, host: reachable[host] ?? host })}/`;
}

export function urlOf({ tlsCert, host, port }: ServeOptions): string {
  return `${tlsCert === undefined ? 'http' : 'https'}://${hostAndPort(host, port)}`;
}

export function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** The text as one word of a command. Plain text stays as it is. */
function shellQuoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
