/**
 * serve --tls-cert and --tls-key: HTTPS, and certificates that change while it serves.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { maxPipelinedRequests } from '../../src/http/limits.ts';
import {
  encryptKey,
  flagsFor,
  makeCertificate,
  makeCertificateFor,
  replaceFiles,
  trusting,
  type TestCertificate,
} from '../support/certificate.ts';
import { run, runHere } from '../support/command.ts';
import { resetsLate } from '../support/connection.ts';
import { databaseFile } from '../support/database.ts';
import { without } from '../support/programs.ts';
import { exchange, request as rawRequest } from '../support/raw.ts';
import {
  entries,
  livez,
  servedCertificate,
  startWithCertificate,
  statusOf,
} from '../support/service.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { unprivileged, withoutUnprivileged } from '../support/unprivileged.ts';
import { until } from '../support/until.ts';

describe('serve with a certificate', { skip: without('openssl') }, () => {
  // The last test stops it.
  const started = shared((t) => startWithCertificate(t, { args: ['--log-level', 'debug'] }));

  it('serves HTTP/1.1 over TLS 1.2 and 1.3, and no older version', async () => {
    const { request, service, open } = started();
    assert.match(service.address, /^https:\/\/127\.0\.0\.1:\d+$/);
    const body = '{"name":"Monstera"}';
    assert.equal(await statusOf(open(), request('POST /plants', { body })), 201);

    const protocols = { 'TLSv1.2': 'http/1.1', 'TLSv1.3': 'http/1.1', 'TLSv1.1': undefined };
    for (const [version, protocol] of Object.entries(protocols)) {
      const maxVersion = version as 'TLSv1.1'; // one of these keys
      const connection = open({
        minVersion: maxVersion,
        maxVersion,
        ciphers: 'DEFAULT:@SECLEVEL=0', // the client would refuse to offer TLS 1.1
        ALPNProtocols: ['h2', 'http/1.1'],
      });
      const status = protocol === undefined ? undefined : 200;
      assert.equal(await statusOf(connection), status, version);
      if (protocol === undefined) continue;
      assert.equal((connection.socket as TLSSocket).alpnProtocol, protocol); // its address is https
    }
  });

  it('accepts only ECDHE with authenticated encryption', async () => {
    const { open } = started();
    for (const [ciphers, expected] of [
      ['ECDHE-ECDSA-AES256-GCM-SHA384', 200],
      ['ECDHE-ECDSA-CHACHA20-POLY1305', 200],
      ['ECDHE-ECDSA-AES128-SHA256', undefined],
      ['ECDHE-ECDSA-AES256-CCM8', undefined],
      ['ECDHE-ECDSA-AES256-SHA', undefined],
    ] as const) {
      const tls: ConnectionOptions = { maxVersion: 'TLSv1.2', ciphers };
      assert.equal(await statusOf(open(tls)), expected, ciphers);
    }
    assert.equal(await statusOf(open()), 200);
  });

  it('tells clients that send plain HTTP to use https', async () => {
    const { port, open } = started();
    const answer = await exchange(port, rawRequest('GET /livez', ['Host: x']));
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.match(answer, /Begin the URL with https:\/\//);
    assert.equal(await exchange(port, '\0'.repeat(100)), '');
    assert.equal(await statusOf(open()), 200);
  });

  it('is not trusted by commands without its certificate', async () => {
    const { service, token } = started();
    const args = ['plants', 'add', 'x', '--url', service.address, '--token', token];
    const { status, stderr } = await run(args);
    assert.equal(status, 1, stderr);
    assert.match(
      stderr,
      /^error: The certificate of https:\S+ is not trusted: self-signed certificate\. If it is/,
    );
  });

  it('serves a client that connects again from the same port after a reset', async (t) => {
    if (resetsLate) return t.skip(resetsLate);
    const { certificate, port, service, open } = started();
    // An address whose ports no other connection of this machine takes.
    const target = { host: '127.0.0.1', port, localAddress: '127.0.0.3' };
    const former = connect(target);
    await once(former, 'connect');
    const { localPort } = former;
    assert.equal(await statusOf(open()), 200); // the service has accepted the former one too
    service.child.kill('SIGSTOP'); // so that it learns of both at once
    former.resetAndDestroy();
    let next = former;
    await until('the port is free', async () => {
      next = connect({ ...target, localPort });
      return once(next, 'connect').then(
        () => true,
        () => false,
      );
    }).finally(() => service.child.kill('SIGCONT'));
    const secure = connectTls({ ...trusting(certificate), host: target.host, socket: next });
    t.after(() => secure.destroy());
    secure.on('error', () => {}); // the service has dropped it
    secure.end(livez);
    assert.match(await text(secure), /^HTTP\/1\.1 200 /);
  });

  it('warns 14 and 2 days before the certificate expires, and when it does, and serves it', async () => {
    const { folder, certificate, service } = started();
    const warned = (days: number, message: string) =>
      entries(service, new RegExp(`"level":40,.*"days":${days},"msg":"certificate ${message}"`));
    const dayMs = 86_400_000;
    for (const [days, message] of [
      [14, 'expires soon'],
      [2, 'expires soon'],
      [0, 'not valid now'],
    ] as const) {
      assert.deepEqual(warned(days, message), []);
      const endMs = Date.now() + days * dayMs + 5_000; // it is loaded two to three seconds later
      const next = makeCertificateFor(folder, `of-${days}-days`, endMs - 30 * dayMs, endMs);
      replaceFiles(certificate, next);
      await until('the warning is logged', () => warned(days, message).length === 1);
    }
    assert.equal(await servedCertificate(started()), 'of-0-days');
  });

  it('uses a new certificate for new connections, and keeps the others', async () => {
    const { folder, certificate, service, open } = started();
    const reloads = () => entries(service, /"msg":"certificate reloaded"/).length;
    for (const name of ['second', 'third']) {
      const old = open({ rejectUnauthorized: false }); // the first one has expired
      assert.equal(await statusOf(old), 200);
      const before = reloads();
      replaceFiles(certificate, makeCertificate(folder, name));
      await until('it is reloaded', () => reloads() > before);
      assert.equal(await servedCertificate(started()), name);
      assert.equal(await statusOf(old), 200);
      assert.equal(await statusOf(open()), 200);
    }
    assert.deepEqual(entries(service, /"msg":"certificate not reloaded"/), []);
  });

  it('limits connections, responds to broken requests and stops as without TLS', async () => {
    const { service, port, open, request } = started();
    const tooLarge = request('POST /plants', { body: 'a'.repeat(4_000_000) });
    assert.equal(await statusOf(open(), tooLarge), 413);

    const pipelined = open();
    pipelined.write(livez.repeat(400));
    for (let at = 0; at <= maxPipelinedRequests; at++) {
      const answer = await pipelined.answer();
      assert.deepEqual([answer?.status, answer?.isLast], [200, at === maxPipelinedRequests]);
    }

    assert.equal(await statusOf(open(), 'hello\r\n\r\n'), 400);
    assert.equal(await statusOf(open(), 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n'), 405);

    const halfClosed = open();
    halfClosed.socket.end(livez);
    assert.equal((await halfClosed.answer())?.status, 200);
    await halfClosed.closed();

    const [partial, idle] = [open(), open()];
    for (const connection of [partial, idle]) assert.equal(await statusOf(connection), 200);
    partial.write(livez.slice(0, 20));
    const silent = connect({ host: '127.0.0.1', port });
    silent.on('error', () => {}); // it is dropped
    await once(silent, 'connect');
    const inHandshake = connect({ host: '127.0.0.1', port });
    inHandshake.on('error', () => {}); // it is dropped too
    inHandshake.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])); // the beginning of a ClientHello
    await once(inHandshake, 'connect');
    service.child.kill('SIGTERM');
    await until('it stops', () => entries(service, /"msg":"stopping"/).length > 0);
    partial.write(livez.slice(20));
    assert.equal((await partial.answer())?.status, 200);
    await partial.closed();
    const stoppedMs = performance.now();
    assert.equal(await service.ended, 0);
    assert.ok(performance.now() - stoppedMs < 5_000, 'it waits for no idle connection');
  });
});

describe(
  'serve with TLS flags that are wrong',
  { concurrency: 2, skip: without('openssl') },
  () => {
    it('exits with 1 and advice if the files cannot be used, and creates no database', async (t) => {
      const { folder: dataFolder, url } = databaseFile(t);
      const folder = tempFolder(t);
      const sound = makeCertificate(folder, 'sound');
      const { key: otherKey } = makeCertificate(folder, 'other');
      const missing = join(folder, 'missing');
      const fifo = join(folder, 'fifo');
      assert.equal(spawnSync('mkfifo', [fifo]).status, 0);
      const wrong: [files: TestCertificate, advice: RegExp][] = [
        [
          { ...sound, cert: missing },
          /missing: there is no such file\. With --tls-cert, set the path of a file/,
        ],
        [
          { ...sound, key: missing },
          /missing: there is no such file\. With --tls-key, set the path of a file/,
        ],
        ...[fifo, folder].map((key): [TestCertificate, RegExp] => [
          { ...sound, key },
          /: it is not a regular file\. With --tls-key, set the path of a file/,
        ]),
        [{ ...sound, cert: sound.key }, /is not a certificate in PEM format\. Set .* --tls-cert/],
        [
          { ...sound, key: sound.cert },
          /is not a private key in PEM format, .*\. Set .* --tls-key/,
        ],
        [
          { ...sound, key: otherKey },
          /other-key\.pem does not belong to the certificate .*sound\.pem/,
        ],
        [
          { ...sound, key: encryptKey(sound.key) },
          /is not a private key .*, or it has a passphrase\. Remove a passphrase with .*\. Set /,
        ],
      ];
      for (const workers of ['1', '2']) {
        for (const [files, advice] of wrong) {
          const flags = ['--database', url, '--workers', workers, ...flagsFor(files)];
          const { status, stdout, stderr } = await runHere(['serve', ...flags]);
          assert.deepEqual([status, stdout], [1, '']);
          assert.match(stderr, /^error: .*\n$/);
          assert.match(stderr, advice);
        }
      }
      assert.deepEqual(readdirSync(dataFolder), []);
    });

    const skip = withoutUnprivileged;
    it('exits with 1 if the user of the service cannot read the key', { skip }, async (t) => {
      const { url } = databaseFile(t);
      const sound = makeCertificate(tempFolder(t), 'sound');
      chmodSync(sound.key, 0);
      const args = ['serve', '--database', url, ...flagsFor(sound)];
      const { status, stderr } = await run(args, unprivileged);
      assert.equal(status, 1);
      assert.match(
        stderr,
        /: permission denied\. With --tls-(?:cert|key), set the path of a file that the service can read\.\n$/,
      );
    });
  },
);
