/**
 * serve --tls-cert and --tls-key: HTTPS, and certificates that change while it serves.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { maxPipelinedRequests } from '../../src/http/limits.ts';
import {
  encryptKey,
  makeCertificate,
  makeExpiredCertificate,
  trusting,
  type TestCertificate,
} from '../support/certificate.ts';
import { run, runHere, serve, type Service } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile, fill } from '../support/database.ts';
import { exchange, request } from '../support/raw.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { unprivileged, withoutUnprivileged } from '../support/unprivileged.ts';
import { until } from '../support/until.ts';
import { without } from '../support/programs.ts';

const livez = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';

function flagsFor({ cert, key }: TestCertificate): string[] {
  return ['--tls-cert', cert, '--tls-key', key];
}

async function start(t: Pick<TestContext, 'after'>, under: readonly string[] = []) {
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

async function statusOf(connection: Connection, bytes = livez): Promise<number | undefined> {
  connection.write(bytes);
  return (await connection.answer())?.status;
}

/** The name of the certificate that a new connection gets. */
async function served(service: Service): Promise<string> {
  const { hostname: host, port } = new URL(service.address);
  const socket = connectTls({ host, port: Number(port), rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

/** Replaces the files of `target`, as an installer of certificates does: one after the other. */
function replace(target: TestCertificate, source: TestCertificate): void {
  for (const file of ['cert', 'key'] as const) {
    copyFileSync(source[file], `${target[file]}.new`);
    renameSync(`${target[file]}.new`, target[file]);
  }
}

function makeFifo(path: string): void {
  assert.equal(spawnSync('mkfifo', [path]).status, 0);
}

const reloaded = /"msg":"certificate reloaded"/;
const notReloaded = /"msg":"certificate not reloaded"/;

/** The log entries that match. */
function entries(service: Service, pattern: RegExp): string[] {
  return service
    .log()
    .split('\n')
    .filter((line) => pattern.test(line) && line.endsWith('}'));
}

describe('serve with a certificate', { skip: without('openssl') }, () => {
  // The last test stops it.
  const sound = shared((t) => start(t));
  const changing = shared((t) => start(t));

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

  it('uses a new certificate for new connections, and keeps the others', async () => {
    const { folder, first, service, open } = changing();
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

  it('keeps its certificate if the new files cannot be used, and logs why', async () => {
    const { folder, first, service } = changing();
    const second = makeCertificate(folder, 'third');
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
      assert.equal(await served(service), 'second');
    }
    const before = entries(service, reloaded).length;
    replace(first, second);
    await until('it is reloaded', () => entries(service, reloaded).length > before);
    assert.equal(await served(service), 'third');
  });

  it('stops even if its key has become a pipe', async () => {
    const { first, service } = changing();
    const before = entries(service, notReloaded).length;
    rmSync(first.key);
    makeFifo(first.key);
    await until('it is logged', () => entries(service, notReloaded).length > before);
    assert.equal(await service.stop(), 0);
  });

  it('warns if the certificate has expired, and serves it', async (t) => {
    const expired = makeExpiredCertificate(tempFolder(t), 'expired');
    const service = await serve(t, ['--database', databaseFile(t).url, ...flagsFor(expired)]);
    const [warning = '', ...others] = entries(service, /"msg":"certificate not valid now"/);
    assert.deepEqual(others, []);
    assert.match(warning, /"level":40.*"validTo":"2020-01-02T00:00:00\.000Z"/);
    assert.equal(await served(service), 'expired');
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
    await until('all are dropped', () => ended === maxFiles, 30_000);
    assert.equal(await statusOf(known, list), 200);
  });
});

describe(
  'serve with TLS flags that are wrong',
  { concurrency: 2, skip: without('openssl') },
  () => {
    it('exits with 2 if one of the two is missing', async (t) => {
      const { folder, url } = databaseFile(t);
      for (const flag of ['--tls-cert', '--tls-key']) {
        const { status, stderr } = await runHere(['serve', '--database', url, flag, 'cert.pem']);
        assert.deepEqual(
          [status, stderr],
          [2, 'error: Set both --tls-cert and --tls-key for HTTPS, or neither for plain HTTP.\n'],
        );
      }
      assert.deepEqual(readdirSync(folder), []);
    });

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
          /missing: there is no such file\. Set its path with --tls-cert/,
        ],
        [
          { ...sound, key: missing },
          /missing: there is no such file\. Set its path with --tls-key/,
        ],
        [
          { ...sound, key: fifo },
          /: it is not a regular file\. Set the path of one with --tls-key/,
        ],
        [{ ...sound, key: folder }, /: it is a folder\. Set the path of the file with --tls-key/],
        [{ ...sound, cert: sound.key }, /is not a certificate in PEM format\. Set .* --tls-cert/],
        [{ ...sound, key: sound.cert }, /is not a private key in PEM format\. Set .* --tls-key/],
        [
          { ...sound, key: otherKey },
          /other-key\.pem does not belong to the certificate .*sound\.pem/,
        ],
        [{ ...sound, key: encryptKey(sound.key) }, /is encrypted\. Remove its passphrase/],
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
      assert.match(stderr, /: permission denied\. Allow the user of the service to read it\.\n$/);
    });
  },
);
