/**
 * Where a PostgreSQL server is, from its address: postgres://USER:PASSWORD@HOST:PORT/DATABASE, with
 * several hosts where another takes over when one fails, as libpq has it (PostgreSQL documentation,
 * section 32.1.1.2).
 */
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { UsageError, Refusal } from '../refusal.ts';
import { ConnectionError } from './errors.ts';
import { connectTimeoutMs, withTimeout } from './timeout.ts';

export interface Address {
  hosts: readonly Host[];
  /** What is left out is taken from PGUSER and so on. */
  user: string | undefined;
  password: string | undefined;
  database: string | undefined;
  tls: Tls;
}

export interface Host {
  /** A name, an address, or the folder of a Unix socket. */
  host: string;
  port: number;
}

/** Whether each host is asked for TLS, and what its certificate is held against. */
export type Tls =
  | { mode: 'disable' }
  | { mode: 'no-verify' }
  | { mode: 'verify-full'; ca: string | undefined }
  /** As far as nothing is said: verified, except on this machine. */
  | { mode: 'default'; ca: string | undefined };

const defaultPort = 5_432;
const portMax = 65_535;
const parameters = ['sslmode', 'sslrootcert'];
const form = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE';

/** Throws UsageError for what is not an address, and for what it asks that is not known here. */
export function parseAddress(url: string): Address {
  const [, user, password, hosts = '', database, query] =
    /^postgres(?:ql)?:\/\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^/?@]*)(?:\/([^/?@]*))?(?:\?([^@]*))?$/i.exec(
      url,
    ) ?? [];
  if (hosts === '')
    throw new UsageError(`This is not the address of a PostgreSQL server: use ${form}.`);
  return {
    hosts: hosts.split(',').map(parseHost),
    user: percentDecode(user),
    password: percentDecode(password),
    database: percentDecode(database),
    tls: parseTls(new URLSearchParams(query)),
  };
}

/**
 * Where a host is. Each address of a name counts as a host of its own, as libpq has it: one may be a
 * standby, or dead. Asked with each connection, because a name may move.
 */
export async function resolveHost({ host }: Host): Promise<string[]> {
  if (isSocket(host) || isIP(host) !== 0) return [host];
  const looked = lookup(host, { all: true }).catch((error: unknown) => {
    throw new ConnectionError(error);
  });
  const found = await withTimeout(looked, undefined, connectTimeoutMs);
  return found.map(({ address }) => address);
}

/** What tls.connect is to be told for this host; false where TLS is not used. */
export function tlsOptions({ host }: Host, tls: Tls) {
  const mode = tls.mode === 'default' && isThisMachine(host) ? 'disable' : tls.mode;
  if (mode === 'disable') return false;
  const ca = 'ca' in tls ? tls.ca : undefined;
  return { rejectUnauthorized: mode !== 'no-verify', ...(ca !== undefined && { ca }) };
}

/** The folder of a Unix socket. */
export function isSocket(host: string): boolean {
  return host.startsWith('/');
}

function isThisMachine(host: string): boolean {
  return isSocket(host) || host === 'localhost' || host === '::1' || isLoopback(host);
}

/** An address and not a name, which could be anybody's. */
function isLoopback(host: string): boolean {
  return isIP(host) === 4 && host.startsWith('127.');
}

function parseHost(text: string): Host {
  const [, bracketed, plain = '', port] = /^(?:\[(.*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? percentDecode(plain) ?? '';
  const number = port === undefined ? defaultPort : Number(port);
  const isHost = bracketed === undefined ? host !== '' : isIP(bracketed) === 6;
  const isGood = isHost && number >= 1 && number <= portMax;
  // Not quoted: it may be a password with a character that is not percent-encoded.
  if (!isGood)
    throw new UsageError(`The address of the database has no good host and port: use ${form}.`);
  return { host, port: number };
}

function parseTls(query: URLSearchParams): Tls {
  for (const name of query.keys()) {
    if (!parameters.includes(name)) {
      throw new UsageError(
        `The address of the database has a parameter that is not known: there are ${parameters.join(' and ')}.`,
      );
    }
  }
  const mode = query.get('sslmode') ?? 'default';
  const caFile = query.get('sslrootcert');
  const ca = caFile === null ? undefined : readCertificates(caFile);
  switch (mode) {
    case 'default':
      return { mode, ca };
    case 'disable':
    case 'no-verify':
      return { mode };
    // Encryption to whoever answers keeps nobody out, so these get what they stand for as well.
    case 'require':
    case 'verify-ca':
    case 'verify-full':
      return { mode: 'verify-full', ca };
    default:
      throw new UsageError(
        `"${mode}" is not known as sslmode: use verify-full, no-verify or disable.`,
      );
  }
}

function readCertificates(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Refusal(`The certificates of sslrootcert cannot be read at ${file}.`, {
      cause: error,
    });
  }
}

function percentDecode(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError(
      `The address of the database has a % that is not percent-encoding: ${form}.`,
    );
  }
}
