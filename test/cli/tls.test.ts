/**
 * serve --tls-cert and --tls-key: HTTPS, and certificates that change while it serves.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { maxPipelinedRequests } from '../../src/http/limits.ts';
import {
  encryptKey,
  makeCertificate,
  makeCertificateFor,
  trusting,
  type TestCertificate,
} from '../support/certificate.ts';
import { run, runHere } from '../support/command.ts';
import { Connection, resetsLate } from '../support/connection.ts';
import { databaseFile } from '../support/database.ts';
import { exchange, request } from '../support/raw.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { unprivileged, withoutUnprivileged } from '../support/unprivileged.ts';
import { until } from '../support/until.ts';
import { without } from '../support/programs.ts';
import {
  entries,
  flagsFor,
  livez,
  makeFifo,
  notReloaded,
  reloaded,
  replace,
  served,
  start,
  statusOf,
} from './tls.ts';

describe('serve with a certificate', { skip: without('openssl') }, () => {
  // The last test stops it.
  const sound = shared((t) => start(t));

  it('serves HTTP/1.1 over TLS 1.2 and 1.3, and no older version', async () => {
    const { first, token, service, open } = sound();
    assert.match(service.address, /^https:\/\/127\.0\.0\.1:\d+$/);
    const json = '{"name":"Monstera"}';
    const lines = ['Host: x', `Authorization: Bearer ${token}`, 'Content-Type: application/json'];
    const create = ['POST /plants HTTP/1.1', ...lines, `Content-Length: ${json.length}`];
    assert.equal(await statusOf(open(), `${create.join('\r\n')}\r\n\r\n${json}`), 201);

    const protocols = { 'TLSv1.2': 'http/1.1', 'TLSv1.3': 'http/1.1', 'TLSv1.1': undefined };
    for (const [version, protocol] of Object.entries(protocols)) {
      const maxVersion = version as 'TLSv1.1'; // one of these keys
      const tls = { ...trusting(first), minVersion: maxVersion, maxVersion };
      const ciphers = 'DEFAULT:@SECLEVEL=0'; // the client would refuse to offer TLS 1.1
      const connection = new Connection(service.address, {
        ...tls,
        ciphers,
        ALPNProtocols: ['h2', 'http/1.1'],
      });
      if (protocol === undefined) assert.equal(await statusOf(connection), undefined, version);
      else {
        assert.equal(await statusOf(connection), 200, version);
        assert.equal((connection.socket as TLSSocket).alpnProtocol, protocol); // its address is https
      }
      connection.socket.destroy();
    }
  });

  it('accepts only ECDHE with authenticated encryption', async () => {
    const { first, open, service } = sound();
    const accepted = ['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305'];
    const refused = [
      'ECDHE-ECDSA-AES128-SHA256',
      'ECDHE-ECDSA-AES256-CCM8',
      'ECDHE-ECDSA-AES256-SHA',
    ];
    for (const ciphers of [...accepted, ...refused]) {
      const tls = { ...trusting(first), maxVersion: 'TLSv1.2' as const, ciphers };
      const connection = new Connection(service.address, tls);
      const expected = accepted.includes(ciphers) ? 200 : undefined;
      assert.equal(await statusOf(connection), expected, ciphers);
      connection.socket.destroy();
    }
    assert.equal(await statusOf(open()), 200);
  });

  it('tells clients that send plain HTTP to use https', async () => {
    const { port, open } = sound();
    const answer = await exchange(port, request('GET /livez', ['Host: x']));
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.match(answer, /Begin the URL with https:\/\//);
    assert.equal(await exchange(port, '\0'.repeat(100)), '');
    assert.equal(await statusOf(open()), 200);
  });

  it('is not trusted by commands without its certificate', async () => {
    const { service, token } = sound();
    const args = ['plants', 'add', 'x', '--url', service.address, '--token', token];
    const { status, stderr } = await run(args);
    assert.equal(status, 1, stderr);
    assert.match(
      stderr,
      /^error: The certificate of https:\S+ is not trusted: self-signed certificate\. If it is/,
    );
  });

  it('uses a new certificate for new connections, and keeps the others', async (t) => {
    const { folder, first, service, open } = await start(t);
    const second = makeCertificate(folder, 'second');
    const old = open();
    assert.equal(await statusOf(old), 200);
    replace(first, second);
    await until('it is reloaded', () => entries(service, reloaded).length > 0);
    assert.equal(await served(service), 'second');
    assert.equal(await statusOf(old), 200);
    assert.equal(await statusOf(open(second)), 200);
    assert.deepEqual(entries(service, notReloaded), []);
  });

  it('warns 14 and 2 days before the certificate expires, and when it does, and serves it', async (t) => {
    const { folder, first, service } = await start(t);
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
      replace(first, makeCertificateFor(folder, `of-${days}-days`, endMs - 30 * dayMs, endMs));
      await until('the warning is logged', () => warned(days, message).length === 1);
    }
    assert.equal(await served(service), 'of-0-days');
  });

  it('serves a client that connects again from the same port after a reset', async (t) => {
    if (resetsLate) return t.skip(resetsLate);
    const { first, port, service, open } = sound();
    const target = { host: '127.0.0.1', port };
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
    const secure = connectTls({ ...trusting(first), host: target.host, socket: next });
    t.after(() => secure.destroy());
    secure.on('error', () => {}); // the service has dropped it
    secure.end(livez);
    assert.match(await text(secure), /^HTTP\/1\.1 200 /);
  });

  it('limits connections, responds to broken requests and stops as without TLS', async () => {
    const { token, service, open } = sound();
    const lines = ['Host: x', `Authorization: Bearer ${token}`, 'Content-Type: application/json'];
    const body = 'a'.repeat(4_000_000);
    const create = ['POST /plants HTTP/1.1', ...lines, `Content-Length: ${body.length}`];
    const refused = open();
    assert.equal(await statusOf(refused, `${create.join('\r\n')}\r\n\r\n${body}`), 413);

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
    const silent = connect({ host: '127.0.0.1', port: Number(new URL(service.address).port) });
    silent.on('error', () => {}); // it is dropped
    await once(silent, 'connect');
    service.child.kill('SIGTERM');
    await until('it stops', () => entries(service, /"msg":"stopping"/).length > 0);
    partial.write(livez.slice(20));
    assert.deepEqual(await partial.answer().then((answer) => [answer?.status, answer?.isLast]), [
      200,
      true,
    ]);
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
      makeFifo(fifo);
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
      assert.ok(readFileSync(sound.cert, 'utf8').startsWith('-----BEGIN'));
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
