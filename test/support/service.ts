/**
 * A service in a process of its own, with a user who has plants, and connections to it.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { flagsFor, makeCertificate, trusting } from './certificate.ts';
import { runOk, serve, type RunOptions, type Service } from './command.ts';
import { Connection } from './connection.ts';
import { databaseFile, fill } from './database.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';

export const livez = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';

export interface Started {
  path: string;
  /** The value for --database. */
  url: string;
  /** Of alice, who owns the plants. */
  token: string;
  service: Service;
  port: number;
  open: (tls?: ConnectionOptions) => Connection;
  /** A socket that reads nothing until it is resumed. */
  openUnread: () => Promise<Socket>;
  /** The text of a request with the token, or that of another user. */
  request: (firstLine: string, options?: RequestOptions) => string;
  tokenOf: (user: string, ...args: readonly string[]) => Promise<string>;
}

interface RequestOptions {
  token?: string;
  /** Sent as JSON. */
  body?: string | undefined;
  headers?: readonly string[];
}

/** Starts `serve` on a database with plants of 800 bytes. */
export async function startService(
  t: Pick<TestContext, 'after'>,
  { plants = 0, args = [], ...options }: StartOptions = {},
): Promise<Started> {
  const { path, url } = databaseFile(t);
  const token = await fill(path, plants);
  const service = await serve(t, ['--database', url, ...args], options);
  const { hostname: host, port } = new URL(service.address);
  return {
    path,
    url,
    token,
    service,
    port: Number(port),
    open(tls) {
      const connection = new Connection(service.address, tls);
      t.after(() => connection.socket.destroy());
      return connection;
    },
    async openUnread() {
      const socket = connect({ host, port: Number(port) });
      socket.on('error', () => {});
      socket.pause();
      t.after(() => socket.destroy());
      await once(socket, 'connect');
      return socket;
    },
    request: (firstLine, more) => requestText(firstLine, { token, ...more }),
    tokenOf: (user, ...more) => runOk(['token', 'create', user, '--database', url, ...more]),
  };
}

interface StartOptions extends Pick<RunOptions, 'env' | 'under'> {
  plants?: number;
  args?: readonly string[];
}

/** With a certificate, whose files are in `folder`. Connections trust what the files have when they open. */
export async function startWithCertificate(
  t: Pick<TestContext, 'after'>,
  { args = [], ...options }: StartOptions = {},
) {
  const folder = tempFolder(t);
  const certificate = makeCertificate(folder, 'first');
  const flags = [...flagsFor(certificate), ...args];
  const started = await startService(t, { args: flags, ...options });
  const open = (tls?: ConnectionOptions) => started.open({ ...trusting(certificate), ...tls });
  return { ...started, folder, certificate, open };
}

/** The name of the certificate that a new connection gets. */
export async function servedCertificate({ port }: Started): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerCertificate();
  await once(socket.end().resume(), 'close'); // the service has completed the handshake too
  return String(subject.CN);
}

/** The log entries that match. */
export function entries(service: Service, pattern: RegExp): string[] {
  const lines = service.log().split('\n');
  return lines.filter((line) => pattern.test(line) && line.endsWith('}'));
}

/** The text of a request with a token and a body of JSON. */
export function requestText(
  firstLine: string,
  { token, body, headers = [] }: RequestOptions,
): string {
  const lines = [`${firstLine} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, ...headers];
  if (body !== undefined) {
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`;
}

/** The head of a request, and its body. */
export function parted(request: string): [head: string, body: string] {
  const end = request.indexOf('\r\n\r\n') + 4;
  return [request.slice(0, end), request.slice(end)];
}

/** Sends the signal and waits until no connection is accepted any more. */
export async function stopListening(
  service: Service,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  service.child.kill(signal);
  const { hostname: host, port } = new URL(service.address);
  await until('the port is closed', async () => {
    const socket = connect({ host, port: Number(port) });
    const isRefused = await once(socket, 'connect').then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
    );
    socket.destroy();
    return isRefused;
  });
}

/** Sends a request, and returns the status of the response; undefined if the connection is closed instead. */
export async function statusOf(connection: Connection, bytes = livez): Promise<number | undefined> {
  connection.write(bytes);
  return (await connection.answer())?.status;
}
