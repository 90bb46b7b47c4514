/**
 * The address of a PostgreSQL server, and what the commands print about one that they cannot use.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseAddress, tlsOptions } from '../../src/postgres/pool/address.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { makeCertificate } from '../support/certificate.ts';
import { run, runHere, runOk, serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { freePort, PostgresServer, query } from '../support/postgres.ts';
import { without } from '../support/programs.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { shared } from '../support/shared.ts';
import { emptyDatabase } from '../support/storages.ts';
import { tempFolder } from '../support/temp.ts';

/** Its password is unlike any other word of a message. */
const server = shared(async (t) => {
  const made = await PostgresServer.make();
  t.after(() => made[Symbol.asyncDispose]());
  return made;
});

function withParts(parts: { password?: string; pathname?: string; search?: string }): string {
  return Object.assign(new URL(server().url()), parts).href;
}

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
    const options = (host: string, mode = '') =>
      tlsOptions({ host, port: 5_432 }, parseAddress(`postgres://host/db${mode}`).tls);
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

/** Runs a command that is refused. */
async function refused(args: readonly string[], status: number, message: RegExp): Promise<void> {
  const outcome = await runHere(args);
  assert.deepEqual([outcome.status, outcome.stdout], [status, '']);
  assert.match(outcome.stderr.trim(), message);
  for (const secret of ['hunter2', new URL(server().url()).password]) {
    assert.ok(!outcome.stderr.includes(secret), outcome.stderr);
  }
}

describe('PostgreSQL: the commands', () => {
  it('fail at startup on errors that waiting does not fix, without showing the password', async () => {
    for (const [database, expected, message] of [
      [withParts({ password: 'hunter2' }), 1, /refuses the user or the password in the address/],
      [withParts({ pathname: '/nowhere' }), 1, /has no database with the name in the address/],
      ['mysql://u:hunter2@host/db', 2, /Use sqlite:PATH or postgres:/],
      ['postgres://u:hunter2/@host/db', 2, /is not the address of a PostgreSQL server/],
      ['postgres://u:hunter2@host/db?x=y', 2, /an unknown parameter/],
    ] as const) {
      await refused(['serve', '--port', '0', '--database', database], expected, message);
      const copy = ['copy', '--to', 'sqlite:never-made.db', '--from', database];
      await refused(copy, expected, message);
    }
  });

  it('never show a password, even if an argument is mistyped', async () => {
    const url = 'postgres://plants:hunter2@127.0.0.1/plants';
    for (const [args, status] of [
      [['serve', url], 2],
      [[url], 2],
      [['serve', `--databse=${url}`], 2],
      [['serve', '--port', url], 2],
      [['backup', url], 1],
      [['migrate', '--database', `sqlite:${url}/x`], 1],
    ] as const) {
      await refused(args, status, /^error: /);
    }
  });

  it('show why a server does not respond', async () => {
    const port = await freePort();
    for (const [database, cause] of [
      [`postgres://u:hunter2@127.0.0.1:${port}/db`, /: connect ECONNREFUSED 127\.0\.0\.1:\d+\.$/],
      [
        'postgres://u:hunter2@nowhere.invalid/db',
        /: (?:getaddrinfo E\w+ nowhere\.invalid|timeout expired)\.$/,
      ],
      [
        withParts({ search: '?sslmode=verify-full' }),
        /The database server does not support TLS\. .*sslmode=disable/,
      ],
      [withParts({ password: '' }), /: SASL: .* password/],
    ] as const) {
      await refused(['token', 'list', '--database', database], 1, cause);
    }
  });

  it('create a schema only if they store something', async (t) => {
    const { url } = await emptyDatabase(t, 'PostgreSQL');
    const target = await emptyDatabase(t, 'SQLite');
    const nothing =
      /There is no Plant Store in this database\. Create its tables with "npx plant-store migrate"\./;
    for (const args of [
      ['token', 'list', '--database', url],
      ['token', 'revoke', '0123456789abcdef', '--database', url],
      ['copy', '--from', url, '--to', target.url],
    ]) {
      await refused(args, 1, nothing);
    }
    const schemas = await query(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'plant_store'");
    assert.deepEqual(schemas, []);
    await runOk(['token', 'create', 'alice', '--database', url]);
    assert.match(await runOk(['token', 'list', '--database', url]), /alice/);
  });

  it('suggest the next command without the password when serve starts', async (t) => {
    const env = { PLANT_STORE_DATABASE: server().url() };
    const service = await serve(t, ['--log-level', 'debug'], { env });
    await service.stop();
    assert.match(
      service.output(),
      /npx plant-store token create alice --database postgres:\/\/plants:PASSWORD@127\.0\.0\.1:/,
    );
    assert.ok(!(service.output() + service.log()).includes(new URL(server().url()).password));
  });

  it('can repeat an interrupted copy', async (t) => {
    const source = databaseFile(t);
    await fill(source.path, 500);
    const { url, proxy } = await databaseBehindProxy(t);
    proxy.bytesToLive = () => 50_000; // enough for all but the plants
    const args = ['copy', '--from', source.url, '--to', url];
    const { status, stderr } = await run(args);
    assert.equal(status, 1);
    assert.match(stderr, /^error: The storage is unavailable, so nothing was changed\..* Cause: /m);
    proxy.bytesToLive = () => Infinity;
    assert.match(await runOk(args), / plants: 500, /);
  });
});

it(
  'PostgreSQL: the certificate must match the host and be signed by the given authority',
  { skip: without('openssl') },
  async (t) => {
    const { cert, key } = makeCertificate(tempFolder(t), 'plants');
    await server().stop();
    server().adopt(key, 'server.key');
    server().adopt(cert, 'server.crt');
    await server().start({ ssl: 'on' });

    const open = async (mode: string, host = '127.0.0.1') => {
      await using storage = new PostgresStorage(server().url().replace('127.0.0.1', host) + mode);
      await storage.open();
      return await server().query(
        "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'plant-store %'",
      );
    };
    assert.deepEqual(await open(''), [{ ssl: false }]);
    assert.deepEqual(await open('?sslmode=no-verify'), [{ ssl: true }]);
    assert.deepEqual(await open(`?sslmode=verify-full&sslrootcert=${cert}`), [{ ssl: true }]);
    const unknown = { name: 'Refusal', message: /certificate cannot be verified/ };
    await assert.rejects(open('?sslmode=verify-full'), unknown);
    await assert.rejects(open(`?sslmode=require`), unknown);
    await assert.rejects(open(`?sslmode=verify-full&sslrootcert=${cert}`, 'localhost'), {
      name: 'Refusal',
      message: /certificate is not valid for this host/,
    });
  },
);
