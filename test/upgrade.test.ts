/**
 * Two versions of the program over one database: what the older one does while the newer one brings the
 * schema up, and afterwards.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { call } from './support/app.ts';
import { run, runOk, serve, start } from './support/command.ts';
import { databaseFile, fill } from './support/database.ts';
import { query } from './support/postgres.ts';
import { itOnce, emptyDatabase, storageOf, type TestDatabase } from './support/storages.ts';
import { tempFolder } from './support/temp.ts';
import { until } from './support/until.ts';
import {
  ask,
  backfill,
  column,
  indexOfSqlite,
  newerProgram,
  newerWords,
  older,
  ready,
} from './support/versions.ts';

itOnce('an older version keeps serving and can start if the newer schema allows it', async (t) => {
  const database = await emptyDatabase(t);
  const { env, token, service } = await older(t, database);
  for (let id = 1; id <= 5; id++) await ask(service, token, 'POST', { id, name: `${id}` });
  const program = newerProgram(t, {
    older: 'continue',
    sqlite: `
      ALTER TABLE plants ADD COLUMN note TEXT;
      UPDATE plants SET note = name;
      CREATE INDEX plants_by_name ON plants (store, name, id);`,
    postgres:
      column + backfill + 'CREATE INDEX plants_by_name ON plant_store.plants (store, name, id);',
  });
  await runOk(['migrate'], { env, program });
  const newer = await serve(t, [], { env, program });
  const restarted = await serve(t, [], { env });
  for (const [at, one] of [service, newer, restarted, service].entries()) {
    assert.equal(await ready(one.address), 200);
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

itOnce('an older version stops serving a newer schema that excludes it', async (t) => {
  const database = await emptyDatabase(t);
  const { env, token, service } = await older(t, database);
  const program = newerProgram(t, {
    older: 'refused',
    sqlite: 'CREATE TABLE counted AS SELECT count(*) AS plants FROM plants;',
    postgres: `
      CREATE TABLE plant_store.counted AS
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
  const newer = await serve(t, [], { env, program });
  await Promise.all(creating);
  await until('it is upgraded', async () => (await ready(newer.address)) === 200);
  const [counted] = await asOwner(database, 'SELECT plants FROM counted');
  const [all] = await asOwner(database, 'SELECT count(*) AS plants FROM plants');
  assert.equal(Number(all?.['plants']), created);
  // On PostgreSQL, an older version notices the schema within a second: upgrade.md says to stop it before.
  if (storageOf(t) === 'SQLite') assert.equal(Number(counted?.['plants']), created);

  for (const path of ['/plants', '/readyz']) {
    assert.equal((await call(service.address + path, 'GET', { token })).status, 503);
  }
  assert.match(service.log(), newerWords);
  assert.match(service.log(), /Update Plant Store, or choose another database\./);
  const restarted = await run(['serve', '--port', '0'], { env });
  assert.equal(restarted.status, 1);
  assert.match(restarted.stderr, newerWords);
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

test('SQLite: an upgrade waits while another process locks the file, and can be cancelled', async (t) => {
  const { path, url } = databaseFile(t);
  await fill(path, 1);
  const program = newerProgram(t, { older: 'continue', sqlite: indexOfSqlite });
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
