/**
 * Two versions of the program over one database: what the older one does while the newer one brings the
 * schema up, and afterwards.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { call } from './support/app.ts';
import { run, runOk, serve, start } from './support/command.ts';
import { databaseFile, fill } from './support/database.ts';
import { query } from './support/postgres.ts';
import { it, storageOf, emptyDatabase, type TestDatabase } from './support/storages.ts';
import { tempFolder } from './support/temp.ts';
import { until } from './support/until.ts';
import { newerProgram } from './support/versions.ts';
import {
  ask,
  backfill,
  before,
  blocked,
  column,
  done,
  index,
  isCompletedAfter,
  older,
  writes,
} from './upgrade.ts';

const newerWords =
  /was written by a newer Plant Store \(schema \d+, this version supports up to \d+\)\./;

it('an older version keeps serving and can start if the newer schema allows it', async (t) => {
  const database = await emptyDatabase(t);
  const { env, token, service } = await older(t, database);
  for (let id = 1; id <= 5; id++) await ask(service, token, 'POST', { id, name: `${id}` });
  const program = newerProgram(t, {
    older: 'continue',
    sqlite: `
      ALTER TABLE plants ADD COLUMN note TEXT;
      UPDATE plants SET note = name;
      CREATE INDEX plants_by_name ON plants (store, name, id);`,
    postgres: column + backfill + index,
  });
  await runOk(['migrate'], { env, program });
  const newer = await serve(t, [], { env, program });
  const restarted = await serve(t, [], { env });
  for (const [at, one] of [service, newer, restarted, service].entries()) {
    assert.equal((await call(`${one.address}/readyz`, 'GET')).status, 200);
    assert.equal((await ask(one, token, 'POST', { id: 6 + at, name: 'later' })).status, 201);
    const { json } = await ask(service, token, 'GET');
    assert.equal((json as unknown[]).length, 6 + at);
  }
  await runOk(['migrate'], { env });

  const [notes] = await asOwner(database, 'SELECT count(*) AS count FROM plants WHERE note = name');
  assert.equal(Number(notes?.['count']), 5);
  const copied = await run(['copy', '--from', database.url, '--to', 'sqlite:copy.db'], {
    cwd: tempFolder(t),
  });
  assert.equal(copied.status, 1);
  assert.match(copied.stderr, newerWords); // it would leave the notes behind
});

it('an older version stops serving before a newer schema that excludes it is created', async (t) => {
  const database = await emptyDatabase(t);
  const { env, token, service } = await older(t, database);
  const program = newerProgram(t, {
    older: 'refused',
    sqlite: 'CREATE TABLE counted AS SELECT count(*) AS plants FROM plants;',
    postgres: `
      CREATE TABLE IF NOT EXISTS plant_store.counted AS
      SELECT count(*) AS plants FROM plant_store.plants;`,
  });
  let created = 0;
  const create = async () => {
    for (;;) {
      const { status, headers } = await ask(service, token, 'POST', { name: 'Monstera' });
      if (status === 503) return assert.ok(headers.get('retry-after'));
      assert.equal(status, 201);
      created++;
    }
  };
  const creating = Array.from({ length: 4 }, create);
  await until('there is load', () => created > 100);
  await runOk(['migrate'], { env, program });
  await Promise.all(creating);
  const [counted] = await asOwner(database, 'SELECT plants FROM counted');
  const [all] = await asOwner(database, 'SELECT count(*) AS plants FROM plants');
  assert.deepEqual([counted?.['plants'], all?.['plants']].map(Number), [created, created]);

  for (const path of ['/plants', '/readyz']) {
    assert.equal((await call(service.address + path, 'GET', { token })).status, 503);
  }
  assert.match(service.log(), newerWords);
  if (storageOf(t) === 'SQLite') {
    await until('the upgrade is logged', () => service.log().includes('"database upgraded"'));
  }
  assert.match(service.log(), /Update Plant Store, or choose another database\./);
  const restarted = await run(['serve', '--port', '0'], { env });
  assert.equal(restarted.status, 1);
  assert.match(restarted.stderr, newerWords);
  const newer = await serve(t, [], { env, program });
  assert.equal((await ask(newer, token, 'GET')).status, 200);
});

/** A statement for either engine. */
async function asOwner({ url }: TestDatabase, sql: string): Promise<Record<string, unknown>[]> {
  if (url.startsWith('sqlite:')) {
    using database = new DatabaseSync(url.slice('sqlite:'.length));
    return database.prepare(sql).all();
  }
  return (await query(url, sql.replace(' FROM ', ' FROM plant_store.'))) as Record<
    string,
    unknown
  >[];
}

describe('SQLite: an upgrade', { concurrency: true }, () => {
  const sqlite = 'CREATE INDEX plants_by_name ON plants (store, name, id);';

  test('waits while another process locks the file, and can be cancelled', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 1);
    const program = newerProgram(t, { older: 'continue', sqlite });
    using other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const args = ['--database', url];
    const children = [['migrate'], ['serve', '--port', '0']].map((command) =>
      start([...command, ...args], { program }),
    );
    const [migrating, serving] = children.map((child) => {
      let text = '';
      child.stderr.setEncoding('utf8').on('data', (chunk) => (text += String(chunk)));
      return { child, stderr: () => text, ended: once(child, 'close') };
    });
    assert.ok(migrating && serving);
    await until('migrate reports the lock', () => /Waiting for the lock/.test(migrating.stderr()));
    await until('serve logs the lock', () => /"database locked"/.test(serving.stderr()));
    serving.child.kill('SIGTERM');
    assert.deepEqual(await serving.ended, [null, 'SIGTERM']);
    other.exec('COMMIT');
    assert.deepEqual(await migrating.ended, [0, null]);
  });

  test('is in a backup: an older version can create one, but not restore it', async (t) => {
    const { folder, path, url } = databaseFile(t);
    await fill(path, 3);
    const program = newerProgram(t, { older: 'continue', sqlite });
    await runOk(['migrate', '--database', url], { program });
    const backup = join(folder, 'backup.db');
    await runOk(['backup', backup, '--database', url]);
    const args = ['restore', backup, '--database', `sqlite:${join(folder, 'restored.db')}`];
    const { status, stderr } = await run(args);
    assert.equal(status, 1);
    assert.match(stderr, newerWords);
    await runOk(args, { program });
  });
});

describe('PostgreSQL: an upgrade', { concurrency: 3 }, () => {
  test('is completed by another process if the first one gets SIGKILL half-way', (t) =>
    isCompletedAfter(t, 'SIGKILL'));

  test('is released to other processes at once if the service stops', async (t) => {
    const setting = await blocked(t, index, writes);
    const service = await serve(t, [], setting);
    await until('the index is being made', async () => (await setting.index()) === false);
    assert.equal(await service.stop(), 0);
    assert.deepEqual(await setting.sessions(), []);
    assert.equal((await setting.ledger())?.['holder'], '');
    const next = setting.migrate();
    await setting.unblock();
    assert.deepEqual(await next.ended, [0, null]);
    assert.equal(await setting.index(), true);
  });

  test('does not affect older versions if it gets a signal before its first statement', async (t) => {
    const setting = await blocked(t, column, 'SELECT 1', 'refused');
    const { child, ended } = setting.migrate();
    await until('older versions stop', async () => (await setting.read()) === 503, 20_000);
    child.kill('SIGINT');
    assert.deepEqual(await ended, [null, 'SIGINT']);
    assert.deepEqual(await setting.ledger(), before);
    assert.deepEqual(await setting.sessions(), []);
    await until('older versions serve again', async () => (await setting.read()) === 200);
  });

  test('is logged with its cause if it fails, and not retried with each request', async (t) => {
    const setting = await blocked(
      t,
      `CREATE SEQUENCE IF NOT EXISTS plant_store.attempts;
       SELECT nextval('plant_store.attempts');
       SELECT 1 / 0;`,
      'SELECT 1',
    );
    const service = await serve(t, [], setting);
    const ready = async () => (await call(`${service.address}/readyz`, 'GET')).status;
    await until('it is in the log', async () => {
      assert.equal(await ready(), 503);
      return service.log().includes('division by zero');
    });
    for (let request = 0; request < 20; request++) assert.equal(await ready(), 503);
    assert.deepEqual(await setting.select('SELECT last_value FROM plant_store.attempts'), [
      { last_value: '1' },
    ]);
    assert.equal(await setting.read(), 200);
  });

  test('does not block other requests while it waits for a lock', async (t) => {
    const setting = await blocked(t, column, 'SELECT FROM plant_store.plants');
    const { ended } = setting.migrate();
    const statuses = new Set<number>();
    const over = new AbortController();
    t.after(() => over.abort());
    const reading = (async () => {
      while (!over.signal.aborted) statuses.add(await setting.read());
    })();
    for (const waits of [true, false, true, false]) {
      const isSo = async () => {
        const [session] = await setting.sessions();
        return (session?.['waits'] === 'Lock') === waits;
      };
      await until(`it waits: ${waits}`, isSo, 20_000);
    }
    over.abort();
    await reading;
    assert.deepEqual([...statuses], [200]);
    await setting.unblock();
    assert.deepEqual(await ended, [0, null]);
    assert.deepEqual(await setting.ledger(), done);
  });
});
