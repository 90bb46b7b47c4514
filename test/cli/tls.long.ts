/**
 * Certificates in several processes, and clients that are slow to connect.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { requestTimeoutMs } from '../../src/http/limits.ts';
import { makeCertificate, trusting } from '../support/certificate.ts';
import { serve } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { without } from '../support/programs.ts';
import {
  entries,
  flagsFor,
  makeFifo,
  notReloaded,
  reloaded,
  replace,
  served,
  start,
  statusOf,
} from './tls.ts';

describe('serve with a certificate', { skip: without('openssl') }, () => {
  it('follows symbolic links, in every worker', async (t) => {
    const folder = tempFolder(t);
    const [first, second] = [makeCertificate(folder, 'first'), makeCertificate(folder, 'second')];
    const live = { cert: join(folder, 'live.pem'), key: join(folder, 'live-key.pem') };
    for (const file of ['cert', 'key'] as const) symlinkSync(first[file], live[file]);
    const args = ['--database', databaseFile(t).url, ...flagsFor(live), '--workers', '2'];
    args.push('--log-level', 'debug');
    const service = await serve(t, args);
    const workersIn = (lines: readonly string[]) =>
      new Set(lines.map((line) => JSON.parse(line).pid)).size;
    await until('both workers serve', async () => {
      const connection = new Connection(service.address, trusting(first));
      assert.equal(await statusOf(connection), 200);
      connection.socket.destroy();
      return workersIn(entries(service, /"route":"\/livez"/)) === 2;
    });
    for (const file of ['cert', 'key'] as const) {
      rmSync(live[file]);
      symlinkSync(second[file], live[file]);
    }
    await until('both workers reload', () => workersIn(entries(service, reloaded)) === 2);
    for (let at = 0; at < 10; at++) assert.equal(await served(service), 'second');
  });

  it('drops clients that are slow to complete the handshake, and serves others', async (t) => {
    const maxFiles = 300; // and so some hundred connections
    const under = ['sh', '-c', `ulimit -n ${maxFiles}; exec "$0" "$@"`];
    const { token, port, open } = await start(t, under);
    const known = open();
    const list = `GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
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
    const { folder, first, service } = await start(t);
    const second = makeCertificate(folder, 'second');
    const refusals: [() => void, RegExp][] = [
      [() => copyFileSync(second.cert, first.cert), /does not belong to the certificate/],
      [() => writeFileSync(first.cert, 'broken'), /is not a certificate/],
      [() => rmSync(first.cert), /there is no such file/],
      [() => makeFifo(first.cert), /it is not a regular file/],
    ];
    for (const [at, [change, reason]] of refusals.entries()) {
      change();
      const logged = () => entries(service, notReloaded);
      await until('it is logged', () => logged().length > at);
      assert.match(logged()[at] ?? '', reason);
      assert.equal(await served(service), 'first');
    }
    const before = entries(service, reloaded).length;
    replace(first, second);
    await until('it is reloaded', () => entries(service, reloaded).length > before);
    assert.equal(await served(service), 'second');
  });

  it('stops even if its key has become a pipe', async (t) => {
    const { first, service } = await start(t);
    const before = entries(service, notReloaded).length;
    rmSync(first.key);
    makeFifo(first.key);
    await until('it is logged', () => entries(service, notReloaded).length > before);
    assert.equal(await service.stop(), 0);
  });
});
