/**
 * The commands of docs/how-to/back-up.md that dump PostgreSQL, archive its WAL, and bring the service back to a moment.
 * They run on a PostgreSQL of Debian, with its folders in folders of the test.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, existsSync, globSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { call, nextOf } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { documentedBlock } from '../support/documented.ts';
import { PostgresServer } from '../support/postgres.ts';
import { skipOutsideCi } from '../support/programs.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const binaries = '/usr/lib/postgresql/15/bin';
const skip =
  !existsSync(join(binaries, 'postgres')) &&
  skipOutsideCi('PostgreSQL is missing. On Debian: apt-get install postgresql-15');

const isRoot = process.getuid?.() === 0;
const block = documentedBlock('how-to/back-up.md');

it(
  'PostgreSQL returns to a moment: a deleted plant is back, and what came later is gone',
  { skip },
  async (t) => {
    const { server, archive, shell } = await start(t);
    await shell(block('archive_mode = on'));
    await server.query('CREATE DATABASE plants');
    const database = server.url('plants');
    const token = await runOk(['token', 'create', 'alice', '--database', database]);
    const replica = await serve(t, ['--database', database]);
    const create = async (name: string) => {
      const { status } = await call(`${replica.address}/plants`, 'POST', { token, json: { name } });
      assert.equal(status, 201);
    };
    await create('Ficus');
    await shell(block('pg_basebackup'));
    await create('Monstera');
    const next = nextOf(await call(`${replica.address}/changes`, 'GET', { token }));
    const [row] = await server.query('SELECT clock_timestamp()::text AS moment');
    const { moment } = row as { moment: string }; // of the statement
    const deleted = await call(`${replica.address}/plants/2`, 'DELETE', { token });
    assert.equal(deleted.status, 204);
    await create('Pilea');
    await replica.stop();

    await shell(block('recovery_target_time').replace('2026-01-31 12:00:00+00', moment));
    await until('recovery has ended', async () => {
      const [state] = await server.query('SELECT pg_is_in_recovery()::text AS state');
      return (state as { state: string }).state === 'false'; // of the statement
    });
    await shell(block('rm /etc/postgresql'));
    await runOk(['verify', '--database', database]);
    const { address } = await serve(t, ['--database', database]);
    const list = await call(`${address}/plants?fields=name`, 'GET', { token });
    assert.deepEqual(list.json, [{ name: 'Ficus' }, { name: 'Monstera' }]);
    const { status, text } = await call(`${address}${next}`, 'GET', { token });
    assert.deepEqual([status, /"reason":"restored"/.test(text)], [410, true]);

    await shell(block('pg_basebackup'));
    const [oldest = ''] = globSync(`${archive}/base-*`).toSorted();
    rmSync(oldest, { recursive: true });
    const segments = () => readdirSync(join(archive, 'wal')).filter((name) => !name.includes('.'));
    const before = segments();
    await shell(block('pg_archivecleanup'));
    assert.ok(segments().length < before.length, before.join());
  },
);

it('a dump of PostgreSQL is restored, and ends cursors', { skip }, async (t) => {
  const { server, shell } = await start(t);
  await server.query('CREATE DATABASE plants');
  const database = server.url('plants');
  const token = await runOk(['token', 'create', 'alice', '--database', database]);
  const replica = await serve(t, ['--database', database]);
  const create = (name: string) =>
    call(`${replica.address}/plants`, 'POST', { token, json: { name } });
  assert.equal((await create('Ficus')).status, 201);
  const next = nextOf(await call(`${replica.address}/changes`, 'GET', { token }));
  await shell(block('pg_dump'));
  assert.equal((await create('Pilea')).status, 201);
  await replica.stop();
  await shell(block('pg_restore'));
  await runOk(['verify', '--database', database]);
  const { address } = await serve(t, ['--database', database]);
  const list = await call(`${address}/plants?fields=name`, 'GET', { token });
  assert.deepEqual(list.json, [{ name: 'Ficus' }]);
  assert.equal((await call(`${address}${next}`, 'GET', { token })).status, 410);
});

/** A server, and a shell with the documented paths in folders of the test. */
async function start(t: TestContext) {
  const server = await PostgresServer.make(binaries);
  t.after(() => server[Symbol.asyncDispose]());
  const [settings, parent] = [tempFolder(t), tempFolder(t)];
  for (const folder of [settings, parent]) chmodSync(folder, 0o755); // another user reads them
  const archive = join(parent, 'archive');
  appendFileSync(join(server.folder, 'data/postgresql.conf'), `include_dir '${settings}'\n`);
  const { username, password, port } = new URL(server.url());
  const env = {
    PATH: `${binaries}:${process.env['PATH']}`,
    PGHOST: '127.0.0.1',
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: decodeURIComponent(password),
  };
  const run = (script: string) => {
    const own = script
      .replaceAll('/var/backups/postgresql', archive)
      .replaceAll('/var/lib/postgresql/15/main', join(server.folder, 'data'))
      .replaceAll('/etc/postgresql/15/main/conf.d', settings)
      .replaceAll('runuser -u postgres --', isRoot ? 'runuser -u nobody --' : '')
      .replaceAll('-o postgres -g postgres', isRoot ? '-o nobody -g nogroup' : '');
    const options = { cwd: parent, encoding: 'utf8', env } as const;
    const { status, stdout, stderr } = spawnSync('sh', ['-euc', own], options);
    if (status !== 0) throw new Error(`${own}${stdout}${stderr}`);
  };
  /** systemd starts and stops the server of the reader. */
  const shell = async (script: string) => {
    for (const part of script.split(/^(systemctl .*)\n/m)) {
      const [, verb] = /^systemctl (\w+) postgresql@15-main$/.exec(part) ?? [];
      if (verb === undefined) run(part);
      if (verb === 'stop' || verb === 'restart') await server.stop();
      if (verb === 'start' || verb === 'restart') await server.start();
    }
  };
  return { server, archive, shell };
}
