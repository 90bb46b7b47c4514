/**
 * The address of a PostgreSQL server: postgres://USER:PASSWORD@HOST:PORT/DATABASE. It can list several hosts for
 * failover, as in libpq (PostgreSQL documentation, section 32.1.1.2).
 */
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { UsageError, Refusal } from '../../refusal.ts';
import { ConnectionError } from '../errors.ts';
import { waitTimeoutMs, withTimeout } from './timeout.ts';

export interface Address {
  hosts: readonly Host[];
  /** Parts that are left out come from PGUSER and the other variables of libpq. */
  user: string | undefined;
  password: string | undefined;
  database: string | undefined;
  tls: Tls;
}

export interface Host {
  /** A name, an IP address, or the directory of a Unix socket. */
  host: string;
  port: number;
}

/** One address of a host. For the directory of a Unix socket, it is that. */
export interface Place extends Host {
  ip: string;
}

export function nameOf({ host, port }: Host): string {
  return `${host}:${port}`;
}

/** Whether to use TLS, and how to verify the server's certificate. */
interface Tls {
  /** By default, there is no TLS to this machine, and verified TLS to any other. */
  mode: 'default' | 'disable' | 'no-verify' | 'verify-full';
  /** The certificates that are trusted, instead of those of the system. */
  ca: string | undefined;
}

/** By `sslmode`. Without verification, TLS does not stop an attacker in the middle. So three modes are the same. */
const tlsModes = new Map<string | null, Tls['mode']>([
  [null, 'default'],
  ['disable', 'disable'],
  ['no-verify', 'no-verify'],
  ['require', 'verify-full'],
  ['verify-ca', 'verify-full'],
  ['verify-full', 'verify-full'],
]);

const defaultPort = 5_432;
const parameters = ['sslmode', 'sslrootcert'];
const addressForm = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE';

/** Throws UsageError if the address is malformed or has an unsupported parameter. */
export function parseAddress(url: string): Address {
  const [, user, password, hosts = '', database, query] =
    /^postgres(?:ql)?:\/\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^/?@#]*)(?:\/([^/?@]*))?(?:\?([^@]*))?$/i.exec(
      url,
    ) ?? [];
  if (hosts === '')
    throw new UsageError(`This is not the address of a PostgreSQL server: use ${addressForm}.`);
  return {
    hosts: hosts.split(',').map(parseHost),
    user: percentDecode(user),
    password: percentDecode(password),
    database: percentDecode(database),
    tls: parseTls(new URLSearchParams(query)),
  };
}

/**
 * The IP addresses of a host. Each one counts as a host, as in libpq, because it can be a standby or down.
 * Resolved for each connection, because a name can move to other addresses.
 */
export async function placesOf({ host, port }: Host): Promise<Place[]> {
  if (isSocket(host) || isIP(host) !== 0) return [{ host, port, ip: host }];
  const found = lookup(host, { all: true }).catch((error: unknown) => {
    throw new ConnectionError(error);
  });
  const addresses = await withTimeout(found, waitTimeoutMs);
  return addresses.map(({ address: ip }) => ({ host, port, ip }));
}

/** Options of tls.connect for this host; false if TLS is not used. */
export function tlsOptions({ host }: Host, tls: Tls) {
  const { mode, ca } = tls;
  if (mode === 'disable' || (mode === 'default' && isThisMachine(host))) return false;
  return { rejectUnauthorized: mode !== 'no-verify', ...(ca !== undefined && { ca }) };
}

/** Whether the host is the directory of a Unix socket. */
export function isSocket(host: string): boolean {
  return host.startsWith('/');
}

function isThisMachine(host: string): boolean {
  // A name such as 127.example can resolve to any address.
  const isLoopback = isIP(host) === 4 && host.startsWith('127.');
  return isSocket(host) || host === 'localhost' || host === '::1' || isLoopback;
}

function parseHost(text: string): Host {
  const url = URL.parse(`postgres://${text}`);
  const host = percentDecode(url?.hostname.replace(/^\[|\]$/g, ''));
  const port = Number(url?.port || defaultPort);
  // The message does not quote it, because it can be a part of a password that is not percent-encoded.
  if (host === undefined || port === 0)
    throw new UsageError(
      `The address of the database has no valid host and port: use ${addressForm}.`,
    );
  return { host, port };
}

function parseTls(query: URLSearchParams): Tls {
  for (const name of query.keys()) {
    if (!parameters.includes(name)) {
      throw new UsageError(
        `The address of the database has an unknown parameter: use only ${parameters.join(' and ')}.`,
      );
    }
  }
  const mode = tlsModes.get(query.get('sslmode'));
  if (mode === undefined)
    throw new UsageError(
      `"${query.get('sslmode')}" is not a supported sslmode: use verify-full, no-verify or disable.`,
    );
  const caFile = query.get('sslrootcert');
  return { mode, ca: caFile === null ? undefined : readCertificates(caFile) };
}

function readCertificates(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Refusal(
      `Cannot read the certificates of sslrootcert at ${file}: check the path and its permissions.`,
      {
        cause: error,
      },
    );
  }
}

function percentDecode(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError(
      'The address of the database has a % that does not begin a percent-encoding: write it as %25.',
    );
  }
}
