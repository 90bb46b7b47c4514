/**
 * Certificates in several processes, and clients that are slow to connect.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { requestTimeoutMs } from '../../src/http/limits.ts';
import { flagsFor, makeCertificate, replaceFiles, trusting } from '../support/certificate.ts';
import { without } from '../support/programs.ts';
import {
  entries,
  servedCertificate,
  startService,
  startWithCertificate,
  statusOf,
} from '../support/service.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const reloaded = /"msg":"certificate reloaded"/;
const notReloaded = /"msg":"certificate not reloaded"/;

describe('serve with a certificate', { concurrency: true, skip: without('openssl') }, () => {
  it('follows symbolic links, in every worker', async (t) => {
    const folder = tempFolder(t);
    const [first, second] = [makeCertificate(folder, 'first'), makeCertificate(folder, 'second')];
    const live = { cert: join(folder, 'live.pem'), key: join(folder, 'live-key.pem') };
    for (const file of ['cert', 'key'] as const) symlinkSync(first[file], live[file]);
    const args = [...flagsFor(live), '--workers', '2', '--log-level', 'debug'];
    const started = await startService(t, { args });
    const { service } = started;
    const workersIn = (lines: readonly string[]) =>
      new Set(lines.map((line) => JSON.parse(line).pid)).size;
    await until('both workers serve', async () => {
      const connection = started.open(trusting(first));
      assert.equal(await statusOf(connection), 200);
      connection.socket.destroy();
      return workersIn(entries(service, /"route":"\/livez"/)) === 2;
    });
    for (const file of ['cert', 'key'] as const) {
      rmSync(live[file]);
      symlinkSync(second[file], live[file]);
    }
    await until('both workers reload', () => workersIn(entries(service, reloaded)) === 2);
    for (let at = 0; at < 10; at++) assert.equal(await servedCertificate(started), 'second');
  });

  it('drops clients that are slow to complete the handshake, and serves others', async (t) => {
    const maxFiles = 300; // and so some hundred connections
    const under = ['sh', '-c', `ulimit -n ${maxFiles}; exec "$0" "$@"`];
    const { port, open, request } = await startWithCertificate(t, { under });
    const known = open();
    const list = request('GET /plants');
    assert.equal(await statusOf(known, list), 200);
    let ended = 0;
    const hello = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]); // the beginning of a ClientHello
    for (let at = 0; at < maxFiles; at++) {
      const slow = connect({ host: '127.0.0.1', port });
      t.after(() => slow.destroy());
      slow.on('error', () => {}).once('close', () => ended++);
      slow.resume();
      await once(slow, 'connect');
      if (at % 2 === 1) slow.write(hello);
    }
    await until('those above the limit are dropped', () => ended >= maxFiles - 150);
    assert.equal(await statusOf(known, list), 200);
    assert.equal(await statusOf(open()), 200);
    await until('all are dropped', () => ended === maxFiles, requestTimeoutMs + 15_000);
    assert.equal(await statusOf(known, list), 200);
  });

  it('keeps its certificate if the new files cannot be used, and logs why', async (t) => {
    const started = await startWithCertificate(t);
    const { folder, certificate: first, service } = started;
    const second = makeCertificate(folder, 'second');
    const refusals: [() => void, RegExp][] = [
      [() => copyFileSync(second.cert, first.cert), /does not belong to the certificate/],
      [() => writeFileSync(first.cert, 'broken'), /is not a certificate/],
      [() => rmSync(first.cert), /there is no such file/],
      [() => spawnSync('mkfifo', [first.cert]), /it is not a regular file/],
    ];
    for (const [at, [change, reason]] of refusals.entries()) {
      change();
      const logged = () => entries(service, notReloaded);
      await until('it is logged', () => logged().length > at);
      assert.match(logged()[at] ?? '', reason);
      assert.equal(await servedCertificate(started), 'first');
    }
    const before = entries(service, reloaded).length;
    replaceFiles(first, second);
    await until('it is reloaded', () => entries(service, reloaded).length > before);
    assert.equal(await servedCertificate(started), 'second');
  });

  it('stops even if its key has become a pipe', async (t) => {
    const { certificate, service } = await startWithCertificate(t);
    const before = entries(service, notReloaded).length;
    rmSync(certificate.key);
    assert.equal(spawnSync('mkfifo', [certificate.key]).status, 0);
    await until('it is logged', () => entries(service, notReloaded).length > before);
    assert.equal(await service.stop(), 0);
  });
});
