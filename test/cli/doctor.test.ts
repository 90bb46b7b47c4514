/**
 * `plant-store doctor`: no false alarm on healthy services, a finding for each trouble, and nothing written.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  chmodSync,
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it, type TestContext } from 'node:test';
import { Client } from 'pg';
import { backupName } from '../../src/sqlite/backup-folder.ts';
import { migrations } from '../../src/sqlite/file/migrate.ts';
import { encodeSchema } from '../../src/shared/migrations.ts';
import { flagsFor, makeCertificate, makeCertificateFor } from '../support/certificate.ts';
import { run, runOk, serve, type RunOptions } from '../support/command.ts';
import { fill } from '../support/database.ts';
import { cannotHaveHosts, withHosts } from '../support/own-hosts.ts';
import { PostgresServer } from '../support/postgres.ts';
import { without } from '../support/programs.ts';
import { missing, reverseProxyNames, startReverseProxy } from '../support/reverse-proxies.ts';
import { shared } from '../support/shared.ts';
import { diskFolder } from '../support/temp.ts';
import { unprivileged, withoutUnprivileged } from '../support/unprivileged.ts';

interface Finding {
  name: string;
  status: string;
  detail: string;
  fix?: string;
}

const nobody = 65_534;
const newer = migrations.newest + 1;
const version = (number: number) => encodeSchema({ version: number, usableFrom: number });

/** The findings of `doctor --json` that are trouble, by name. Its exit status must follow from them. */
async function troubles(
  url: string,
  { args = [], ...options }: RunOptions & { args?: readonly string[] } = {},
): Promise<Map<string, Finding>> {
  const { status, stdout, stderr } = await run(
    ['doctor', '--json', '--database', url, ...args],
    options,
  );
  assert.equal(stderr, '');
  const all: Finding[] = JSON.parse(stdout);
  const found = all.filter((one) => ['warn', 'fail'].includes(one.status));
  assert.equal(status, found.some((one) => one.status === 'fail') ? 1 : 0);
  for (const one of found) assert.ok(one.fix, `${one.name} has no fix: ${one.detail}`);
  for (const one of all) if (!found.includes(one)) assert.equal(one.fix, undefined);
  return new Map(found.map((one) => [one.name, one]));
}

async function assertHealthy(...args: Parameters<typeof troubles>): Promise<void> {
  assert.deepEqual([...(await troubles(...args)).values()], []);
}

/** A database on a disk, with a user and plants. */
async function database(t: TestContext, plants = 3) {
  const folder = diskFolder(t);
  const path = join(folder, 'plants.db');
  await fill(path, plants);
  const change = (sql: string) => {
    using opened = new DatabaseSync(path);
    opened.exec(sql);
  };
  return { folder, path, url: `sqlite:${path}`, change };
}

describe('doctor finds nothing wrong', () => {
  it('with a new database, a used one, and one behind a symbolic link', async (t) => {
    const folder = diskFolder(t);
    const url = `sqlite:${join(folder, 'new.db')}`;
    await runOk(['migrate', '--database', url]);
    await assertHealthy(url);
    const used = await database(t);
    symlinkSync(used.path, join(folder, 'link.db'));
    await assertHealthy(used.url);
    await assertHealthy(`sqlite:${join(folder, 'link.db')}`);
  });

  it('with a service, with one of two workers, and after their end', async (t) => {
    for (const args of [[], ['--workers', '2']]) {
      const { url } = await database(t);
      const service = await serve(t, ['--database', url, ...args]);
      await assertHealthy(url, { args: ['--base-url', service.address] });
      await service.stop();
      await assertHealthy(url);
    }
  });

  it('with a folder of another user', { skip: withoutUnprivileged }, async (t) => {
    const { folder, url } = await database(t);
    for (const name of ['.', ...readdirSync(folder)]) chownSync(join(folder, name), nobody, nobody);
    chmodSync(folder, 0o700);
    await assertHealthy(url);
    await assertHealthy(url, unprivileged);
    await serve(t, ['--database', url], unprivileged);
    await assertHealthy(url);
    await assertHealthy(url, unprivileged);
  });

  it('with a service that has a certificate', { skip: without('openssl') }, async (t) => {
    const { folder, url } = await database(t);
    const certificate = makeCertificate(folder, 'first');
    for (const host of ['127.0.0.1', '::1']) {
      const args = ['--database', url, '--host', host, ...flagsFor(certificate)];
      const { address } = await serve(t, args);
      const env = { NODE_EXTRA_CA_CERTS: certificate.cert, PLANT_STORE_BASE_URL: address };
      await assertHealthy(url, { env, args: flagsFor(certificate) });
    }
  });

  for (const name of reverseProxyNames) {
    const skip = missing(name) || cannotHaveHosts();
    it(`behind ${name}, below a path`, { skip }, async (t) => {
      const { url } = await database(t);
      const service = await serve(t, ['--database', url]);
      const upstream = Number(new URL(service.address).port);
      const { httpsPort, folder } = await startReverseProxy(t, name, upstream, true);
      const env = { NODE_EXTRA_CA_CERTS: join(folder, 'plants.pem') };
      const under = withHosts(t, ['127.0.0.1 plants.example']);
      const args = ['--base-url', `https://plants.example:${httpsPort}/api`];
      await assertHealthy(url, { env, under, args });
    });
  }
});

/** Changes a request before it is passed on, and its response. */
type ProxyFault = (request: IncomingMessage, response: IncomingMessage | undefined) => void;

const withUrl =
  (urlFor: (request: IncomingMessage) => string): ProxyFault =>
  (request, response) => {
    if (response === undefined) request.url = urlFor(request);
  };

/** What a proxy does, and the checks that find it. */
const proxyFaults: readonly [string, string[], ProxyFault][] = [
  ['drops Authorization', ['proxy'], ({ headers }) => delete headers.authorization],
  ['drops X-Request-Id', ['proxy'], (_, response) => delete response?.headers['x-request-id']],
  [
    'allows only GET, HEAD and POST',
    ['proxy'],
    withUrl(({ method = '', url = '' }) => (/GET|HEAD|POST/.test(method) ? url : '/none')),
  ],
  ['decodes paths', ['proxy'], withUrl(({ url = '' }) => decodeURIComponent(url))],
  [
    'weakens ETag',
    ['address'],
    (_, response) => response?.headers.etag && (response.headers.etag = 'W/"x"'),
  ],
  ['leads elsewhere', ['address', 'proxy'], withUrl(() => '/none')],
];

/** Starts a proxy that changes requests or responses. Returns its address. */
async function faultyProxy(t: TestContext, upstream: string, fault: ProxyFault): Promise<string> {
  const proxy = createServer((incoming, outgoing) => {
    fault(incoming, undefined);
    const { method, url, headers } = incoming;
    const passedOn = httpRequest(upstream, { method, path: url, headers }, (response) => {
      fault(incoming, response);
      outgoing.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(passedOn);
  }).listen(0, '127.0.0.1');
  t.after(() => proxy.close());
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo; // it listens on a port
  return `http://127.0.0.1:${port}`;
}

type Database = Awaited<ReturnType<typeof database>>;

const sql =
  (text: string) =>
  ({ change }: Database) =>
    change(text);

/** What is wrong, the check that finds it, and its words. */
const damages: readonly [string, string, RegExp, (database: Database) => void][] = [
  ['a missing file', 'file', /no database at/, ({ path }) => rmSync(path)],
  ['a second path', 'file', /2 hard links/, ({ path }) => linkSync(path, `${path}2`)],
  ['an empty file', 'schema', /has no tables/, ({ path }) => truncateSync(path)],
  ['text', 'schema', /not an SQLite/, ({ path }) => writeFileSync(path, 'x'.repeat(9_000))],
  ['an older schema', 'schema', /has schema 1 of/, sql(`PRAGMA user_version = ${version(1)}`)],
  ['a newer schema', 'schema', /newer Plant/, sql(`PRAGMA user_version = ${version(newer)}`)],
  ['damage', 'integrity', /./, ({ path }) => writeFileSync(path, readFileSync(path).fill(90, 4e4))],
  ['a long WAL', 'wal', /^300 MiB/, ({ path }) => createSparse(`${path}-wal`, 300 * 2 ** 20)],
  ['unused tokens', 'tokens', /180 days: 1$/, sql('UPDATE tokens SET created_at = 1')],
  [
    'no manager',
    'managers',
    /^store main has none/,
    sql(`INSERT INTO users (store, id, name, role)
    VALUES (1, 8, 'b', 'member'), (1, 9, 'c', 'member')`),
  ],
  [
    'a wrong clock',
    'clock',
    /14\d\d minutes/,
    sql('UPDATE retention SET confirmed_at = 864e5 + confirmed_at'),
  ],
];

function createSparse(path: string, bytes: number): void {
  writeFileSync(path, '');
  truncateSync(path, bytes);
}

describe('doctor finds', () => {
  for (const [what, check, detail, damage] of damages) {
    it(what, async (t) => {
      const sick = await database(t);
      damage(sick);
      const found = await troubles(sick.url);
      assert.match(found.get(check)?.detail ?? '', detail, JSON.stringify([...found]));
      assert.equal(found.size, check === 'wal' ? 2 : 1); // it is also one that was not closed
    });
  }

  it('a WAL that a killed service has left, and changes nothing', async (t) => {
    const { folder, url } = await database(t);
    const service = await serve(t, ['--database', url]);
    await runOk(['token', 'create', 'bob', '--database', url]);
    await service.stop('SIGKILL');
    const read = () => readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]);
    const before = read();
    assert.match((await troubles(url)).get('schema')?.detail ?? '', /was not closed/);
    assert.deepEqual(read(), before);
    await runOk(['store', 'list', '--database', url]);
    await assertHealthy(url);
  });

  it('files that another user owns', { skip: withoutUnprivileged }, async (t) => {
    const { folder, url } = await database(t);
    chownSync(folder, nobody, nobody);
    assert.deepEqual([...(await troubles(url)).keys()], ['file']);
    const byOwner = await troubles(url, unprivileged);
    assert.match(byOwner.get('file')?.detail ?? '', /^Cannot write to/);
    chmodSync(folder, 0o700);
    chownSync(folder, 0, 0);
    const hidden = await troubles(url, unprivileged);
    assert.match(hidden.get('file')?.fix ?? '', /^Run doctor as root/);
  });

  it('files that every user can access or replace', async (t) => {
    const { folder, path, url } = await database(t);
    for (const [changed, mode, fixed] of [
      [path, 0o604, 0o600],
      [folder, 0o777, 0o775],
    ] as const) {
      chmodSync(changed, mode);
      const found = await troubles(url);
      assert.deepEqual([...found.keys()], ['file']);
      execFileSync('sh', ['-c', found.get('file')?.fix ?? '']);
      assert.equal(statSync(changed).mode & 0o777, fixed);
      await assertHealthy(url);
    }
  });

  it('memory, a full disk and a mounted file', { skip: cannotHaveHosts() }, async (t) => {
    const { folder, path, url } = await database(t);
    const inside = (script: string): RunOptions => ({
      under: ['unshare', '-m', 'sh', '-c', `${script} && exec "$@"`, 'sh'],
    });
    const copy = join(diskFolder(t), 'copy');
    const moved = (size: string) =>
      inside(
        `cp -r '${folder}' '${copy}' && mount -t tmpfs -o size=${size} x '${folder}' && cp '${copy}'/* '${folder}' && rm -r '${copy}'`,
      );
    const inMemory = await troubles(url, moved('1g'));
    assert.deepEqual([...inMemory.keys()], ['file-system', 'sync']);
    assert.match(inMemory.get('sync')?.detail ?? '', /no disk is so fast/);
    const full = await troubles(url, moved('1m'));
    assert.deepEqual([...full.keys()], ['file-system', 'space', 'sync']);
    const alone = await troubles(url, inside(`mount --bind '${path}' '${path}'`));
    assert.match(alone.get('file')?.detail ?? '', /is mounted without its folder/);
  });

  it('a low limit of open files', { skip: without('prlimit') }, async (t) => {
    const { url } = await database(t);
    const found = await troubles(url, { under: ['prlimit', '--nofile=1000:1000'] });
    assert.deepEqual([...found.keys()], ['descriptors']);
  });

  it('a certificate that ends, or that nobody trusts', { skip: without('openssl') }, async (t) => {
    const { folder, url } = await database(t);
    const [dayMs, nowMs] = [86_400_000, Date.now()];
    const ending = makeCertificateFor(folder, 'ending', nowMs - 80 * dayMs, nowMs + 10 * dayMs);
    const { address } = await serve(t, ['--database', url, ...flagsFor(ending)]);
    const args = ['--base-url', address];
    const env = { NODE_EXTRA_CA_CERTS: ending.cert };
    const found = await troubles(url, { args: [...args, ...flagsFor(ending)], env });
    assert.deepEqual([...found.keys()], ['tls', 'certificate']);
    const distrusted = await troubles(url, { args });
    assert.match(distrusted.get('address')?.detail ?? '', /is not trusted/);
    assert.equal(distrusted.size, 1);
  });

  it(
    'a certificate that has ended, and a key of another one',
    { skip: without('openssl') },
    async (t) => {
      const { folder, url } = await database(t);
      const [dayMs, nowMs] = [86_400_000, Date.now()];
      const ended = makeCertificateFor(folder, 'ended', nowMs - 90 * dayMs, nowMs - dayMs);
      const early = makeCertificateFor(folder, 'early', nowMs + dayMs, nowMs + 90 * dayMs);
      for (const [pair, status, detail] of [
        [ended, 'fail', /^it is valid from .* to /],
        [early, 'fail', /^it is valid from .* to /],
        [{ ...ended, key: early.key }, 'fail', /does not belong to the certificate/],
      ] as const) {
        const env = { PLANT_STORE_TLS_CERT: pair.cert, PLANT_STORE_TLS_KEY: pair.key };
        const found = await troubles(url, { env });
        assert.deepEqual([...found.keys()], ['tls']);
        assert.equal(found.get('tls')?.status, status);
        assert.match(found.get('tls')?.detail ?? '', detail);
      }
    },
  );

  it('an old backup, or none', async (t) => {
    const { url } = await database(t);
    const folder = diskFolder(t);
    const args = ['--backup-dir', folder, '--backup-every', '6h'];
    assert.deepEqual([...(await troubles(url, { args })).keys()], ['backup']);
    for (const [hours, found] of [
      [13, ['backup']],
      [11, []],
    ] as const) {
      writeFileSync(join(folder, backupName(new Date(Date.now() - hours * 3_600_000))), '');
      assert.deepEqual([...(await troubles(url, { args })).keys()], found);
    }
  });

  for (const [what, checks, change] of proxyFaults) {
    it(`a proxy that ${what}`, async (t) => {
      const { url } = await database(t);
      const { address } = await serve(t, ['--database', url]);
      const proxy = await faultyProxy(t, address, change);
      const found = await troubles(url, { args: ['--base-url', proxy] });
      assert.deepEqual([...found.keys()], checks);
    });
  }
});

describe('doctor on PostgreSQL', () => {
  const server = shared(async (t) => {
    const made = await PostgresServer.make();
    t.after(() => made[Symbol.asyncDispose]());
    await runOk(['token', 'create', 'alice', '--database', made.url()]);
    return made;
  });

  /** The troubles of a server with these settings. */
  const withSettings = async (settings: Record<string, string>) => {
    await server().stop();
    await server().start(settings);
    return troubles(server().url());
  };

  it('finds nothing wrong with a server, one with replicas, and one that shows little to its user', async (t) => {
    const primary = server();
    await assertHealthy(primary.url());
    for (let replica = 0; replica < 3; replica++) await serve(t, ['--database', primary.url()]);
    await assertHealthy(primary.url());
    await primary.query(
      `CREATE ROLE weak LOGIN PASSWORD 'weak'; GRANT USAGE ON SCHEMA plant_store TO weak;
       GRANT SELECT ON ALL TABLES IN SCHEMA plant_store TO weak`,
    );
    await assertHealthy(`postgres://weak:weak@127.0.0.1:${primary.port}/postgres`);
  });

  it('finds a database without tables, and what is in the tables', async () => {
    const primary = server();
    await primary.query('CREATE DATABASE empty');
    assert.deepEqual([...(await troubles(primary.url('empty'))).keys()], ['server']);
    await primary.query(
      `UPDATE plant_store.retention SET confirmed_at = confirmed_at + 86400000;
       UPDATE plant_store.tokens SET created_at = 1, last_used_at = NULL;
       INSERT INTO plant_store.users (store, id, name, role)
       SELECT store, 7 + number, 'user' || number, 'member' FROM plant_store.stores, generate_series(1, 2) AS number`,
    );
    assert.deepEqual([...(await troubles(primary.url())).keys()], ['tokens', 'managers', 'clock']);
    await primary.query(
      `UPDATE plant_store.retention SET confirmed_at = confirmed_at - 86400000;
       DELETE FROM plant_store.users WHERE id > 7; UPDATE plant_store.tokens SET created_at = 1795000000000`,
    );
  });

  it('finds settings that lose changes, too few connections, and a server that is down', async () => {
    const unsafe = await withSettings({ fsync: 'off' });
    assert.match(unsafe.get('server')?.detail ?? '', /fsync = off/);
    assert.match(unsafe.get('server')?.fix ?? '', /ALTER SYSTEM/);
    const few = { max_connections: '10', superuser_reserved_connections: '0' };
    await withSettings(few);
    const clients = Array.from(
      { length: 9 },
      () => new Client({ connectionString: server().url() }),
    );
    await Promise.all(clients.map((client) => client.connect()));
    assert.deepEqual([...(await troubles(server().url())).keys()], ['connections']);
    await Promise.all(clients.map((client) => client.end()));
    await server().stop();
    const down = await troubles(server().url());
    assert.match(down.get('server')?.detail ?? '', /ECONNREFUSED/);
    assert.equal(down.size, 1);
    await server().start();
  });

  it('finds nothing wrong with a standby, and finds when it is gone or not waited for', async () => {
    const primary = server();
    await using standby = await primary.standby();
    const url = primary.urlWith(standby);
    await assertHealthy(url);
    await standby.stop();
    assert.deepEqual([...(await troubles(url)).keys()], ['standbys']);
    const local = { synchronous_standby_names: 'standby', synchronous_commit: 'local' };
    assert.deepEqual([...(await withSettings(local)).keys()], ['settings', 'standbys']);
    await withSettings({});
  });

  it('finds a second server that accepts writes', async () => {
    const primary = server();
    await using twin = await primary.twin();
    assert.match(
      (await troubles(primary.urlWith(twin))).get('server')?.detail ?? '',
      /both accept writes\.$/,
    );
  });
});

describe('doctor', () => {
  it('lists its checks, runs one, and refuses another name', async (t) => {
    const { url } = await database(t);
    const list = await runOk(['doctor', '--list', '--database', url]);
    const names = list.split('\n').map((line) => line.replace(/:.*/, ''));
    assert.equal(new Set(names).size, names.length);
    for (const name of names) {
      const { status, stdout } = await run(['doctor', name, '--json', '--database', url]);
      assert.deepEqual(
        [status, JSON.parse(stdout).length, JSON.parse(stdout)[0].name],
        [0, 1, name],
      );
    }
    const { status, stderr } = await run(['doctor', 'frobnicate', '--database', url]);
    assert.deepEqual([status, stderr], [2, 'error: There is no check frobnicate. See --list.\n']);
  });
});
