import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parseAddress, tlsOptions } from '../../src/postgres/pool/address.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { PostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp.ts';
import { without } from '../support/programs.ts';

describe('PostgreSQL: an address', () => {
  it('contains hosts, a user, a password and a database, each percent-decoded', () => {
    const url =
      'postgres://us%40er:a%3Ab%2F@one.example,[::1]:5433,%2Frun%2Fpostgresql/my%20plants';
    assert.deepEqual(parseAddress(url), {
      hosts: [
        { host: 'one.example', port: 5_432 },
        { host: '::1', port: 5_433 },
        { host: '/run/postgresql', port: 5_432 },
      ],
      user: 'us@er',
      password: 'a:b/',
      database: 'my plants',
      tls: { mode: 'default', ca: undefined },
    });
    assert.equal(parseAddress('postgresql://localhost').database, undefined);
  });

  for (const [url, message] of [
    ['postgres://', /is not the address of a PostgreSQL server/],
    ['postgres://host:port/db', /has no valid host and port/],
    ['postgres://host:99999/db', /has no valid host and port/],
    ['postgres://a,,b/db', /has no valid host and port/],
    ['postgres://[nonsense]/db', /has no valid host and port/],
    ['postgres://us:1234/secret@host/db', /is not the address of a PostgreSQL server/],
    ['postgres://us:12?secret@host/db', /is not the address of a PostgreSQL server/],
    ['postgres://us%zzer@host/db', /a % that does not begin a percent-encoding: write it as %25/],
    ['postgres://host/db?ssl=true', /an unknown parameter: use only sslmode and sslrootcert/],
    ['postgres://host/db?sslmode=prefer', /use verify-full, no-verify or disable/],
    [
      'postgres://host/db?sslrootcert=/nowhere',
      /Cannot read the certificates of sslrootcert at \/nowhere/,
    ],
  ] as const) {
    it(`is refused as ${url}, with a message that describes the fix`, () => {
      const name = url.includes('/nowhere') ? 'Refusal' : 'UsageError';
      assert.throws(() => parseAddress(url), { name, message });
    });
  }

  it('requires verified TLS, except for this machine', () => {
    const options = (host: string, query = '') =>
      tlsOptions({ host, port: 5_432 }, parseAddress(`postgres://host/db${query}`).tls);
    for (const here of ['localhost', '127.0.0.1', '127.8.0.1', '::1', '/run/postgresql']) {
      assert.equal(options(here), false);
    }
    for (const there of ['db.example', '10.0.0.1', 'localhost.example', '127.example', 'fe80::1']) {
      assert.deepEqual(options(there), { rejectUnauthorized: true });
      assert.deepEqual(options(there, '?sslmode=no-verify'), { rejectUnauthorized: false });
      assert.equal(options(there, '?sslmode=disable'), false);
    }
    for (const mode of ['require', 'verify-ca', 'verify-full']) {
      assert.deepEqual(options('localhost', `?sslmode=${mode}`), { rejectUnauthorized: true });
    }
  });
});

it(
  'PostgreSQL: the certificate must match the host and be signed by the given authority',
  { skip: without('openssl') },
  async (t) => {
    const server = await PostgresServer.make();
    t.after(() => server[Symbol.asyncDispose]());
    await server.stop();
    const folder = tempFolder(t);
    const [key, certificate] = [join(folder, 'server.key'), join(folder, 'server.crt')];
    const subject = ['-subj', '/CN=plants', '-addext', 'subjectAltName=IP:127.0.0.1'];
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-days',
        '2',
      ].concat(['-keyout', key, '-out', certificate], subject),
      { stdio: 'ignore' },
    );
    for (const file of ['server.key', 'server.crt']) server.adopt(join(folder, file), file);
    await server.start({ ssl: 'on' });

    const open = async (query: string, host = '127.0.0.1') => {
      await using storage = new PostgresStorage(server.url().replace('127.0.0.1', host) + query);
      await storage.open();
      return await server.query(
        "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'plant-store %'",
      );
    };
    assert.deepEqual(await open(''), [{ ssl: false }]);
    assert.deepEqual(await open('?sslmode=no-verify'), [{ ssl: true }]);
    assert.deepEqual(await open(`?sslmode=verify-full&sslrootcert=${certificate}`), [
      { ssl: true },
    ]);
    const refused = { name: 'Refusal', kind: 'unknown-authority' };
    await assert.rejects(open('?sslmode=verify-full'), refused);
    await assert.rejects(open(`?sslmode=require`), refused);
    await assert.rejects(open(`?sslmode=verify-full&sslrootcert=${certificate}`, 'localhost'), {
      name: 'Refusal',
      kind: 'certificate-of-other-host',
    });
  },
);
