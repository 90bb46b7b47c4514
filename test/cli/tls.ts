/**
 * A service with a certificate, and connections to it.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, renameSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { makeCertificate, trusting, type TestCertificate } from '../support/certificate.ts';
import { serve, type Service } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile, fill } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';

export const livez = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';

export function flagsFor({ cert, key }: TestCertificate): string[] {
  return ['--tls-cert', cert, '--tls-key', key];
}

export async function start(t: Pick<TestContext, 'after'>, under: readonly string[] = []) {
  const folder = tempFolder(t);
  const first = makeCertificate(folder, 'first');
  const { path, url } = databaseFile(t);
  const token = await fill(path, 0);
  const flags = ['--database', url, '--log-level', 'debug', ...flagsFor(first)];
  const service = await serve(t, flags, { under });
  const open = (certificate = first) => {
    const connection = new Connection(service.address, trusting(certificate));
    t.after(() => connection.socket.destroy());
    return connection;
  };
  return { folder, first, token, service, port: Number(new URL(service.address).port), open };
}

export async function statusOf(connection: Connection, bytes = livez): Promise<number | undefined> {
  connection.write(bytes);
  return (await connection.answer())?.status;
}

/** The name of the certificate that a new connection gets. */
export async function served(service: Service): Promise<string> {
  const { hostname: host, port } = new URL(service.address);
  const socket = connectTls({ host, port: Number(port), rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

/** Replaces the files of `target`, as an installer of certificates does: one after the other. */
export function replace(target: TestCertificate, source: TestCertificate): void {
  for (const file of ['cert', 'key'] as const) {
    copyFileSync(source[file], `${target[file]}.new`);
    renameSync(`${target[file]}.new`, target[file]);
  }
}

export function makeFifo(path: string): void {
  assert.equal(spawnSync('mkfifo', [path]).status, 0);
}

export const reloaded = /"msg":"certificate reloaded"/;
export const notReloaded = /"msg":"certificate not reloaded"/;

/** The log entries that match. */
export function entries(service: Service, pattern: RegExp): string[] {
  return service
    .log()
    .split('\n')
    .filter((line) => pattern.test(line) && line.endsWith('}'));
}
