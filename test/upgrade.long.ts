/**
 * Upgrades of large tables, and those that are interrupted or that an older version must not undo.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Client } from 'pg';
import { migrations } from '../src/postgres/schema/migrate.ts';
import { encodeSchema } from '../src/shared/migrations.ts';
import { call } from './support/app.ts';
import { run, runOk, serve, start } from './support/command.ts';
import { databaseFile, fill } from './support/database.ts';
import { ledger } from './support/ledger.ts';
import { withIds } from './support/many-rows.ts';
import { query } from './support/postgres.ts';
import { emptyDatabase, it, storageOf } from './support/storages.ts';
import { until, untilCount } from './support/until.ts';
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

/**
 * An index over a million plants takes longer than any limit of time that the service has: 3 seconds for a statement, 4
 * for its answer, and 5 for SQLite's lock. The expressions are costly, so that a million rows are enough.
 */
const plants = 1_000_000;
const maxLimitMs = 10_000;
const users = 8;

const index = {
  sqlite: `
    CREATE INDEX plants_by_note
    ON plants (store, length(replace(hex(zeroblob(400)), '0', name)), id);`,
  postgres: `
    CREATE INDEX plants_by_note
    ON plant_store.plants (store, md5(repeat(name, 1000)), id);`,
};

it('upgrades a large table while an older version serves, and loses nothing', async (t) => {
  const database = await emptyDatabase(t);
  const env = { PLANT_STORE_DATABASE: database.url };
  const reader = await runOk(['token', 'create', 'alice'], { env });
  await database.run(`
    INSERT INTO plants (store, id, owner, tag, name)
    ${withIds(plants)} SELECT store, id, 1, '', 'plant ' || id FROM stores, ids ORDER BY id;
    UPDATE stores SET last_id = ${plants}`);
  const store = ['--store', 'ledger', '--role', 'manager'];
  const service = await serve(t, ['--log-level', 'silent'], { env });
  const addresses = [service.address];
  const book = ledger(addresses, await runOk(['token', 'create', 'maria', ...store], { env }));
  await book.begin();
  let goesOn = true;
  t.after(() => (goesOn = false)); // else it would ask for ever if the test fails
  const work = Array.from({ length: users }, (_, user) => book.work(user + 1, () => goesOn));
  const reads = readAlways(service.address, reader, () => goesOn);
  const created = () => book.counts['POST 201'] ?? 0;
  await untilCount('creates', 101, created);

  const program = newerProgram(t, { older: 'continue', ...index });
  const [readsBefore, createdBefore] = [reads.count, created()];
  const startedMs = performance.now();
  const newer = await upgrade(t, env, program);
  const tookMs = performance.now() - startedMs;
  const during = { reads: reads.count - readsBefore, created: created() - createdBefore };
  t.diagnostic(`${plants} plants, ${Math.round(tookMs)} ms: ${JSON.stringify(during)}`);
  t.diagnostic(`the slowest read took ${Math.round(reads.slowestMs)} ms`);
  assert.ok(tookMs > maxLimitMs, `it took only ${tookMs} ms`);
  assert.ok(during.reads > 100, 'reads succeed meanwhile');
  assert.ok(book.counts['POST 503 storage-unavailable'], 'writes are refused in time');

  addresses.push(...newer);
  const createdThen = created();
  await untilCount('creates after the upgrade', createdThen + 101, created);
  goesOn = false;
  await Promise.all([...work, reads.done]);
  await book.check();
  t.diagnostic(JSON.stringify(book.counts));
});

/** Starts two services of the newer version, of which one upgrades. Returns their addresses once they serve. */
async function upgrade(t: TestContext, env: Record<string, string>, program: string) {
  const options = { env, program };
  const isSqlite = storageOf(t) === 'SQLite';
  const migrating = isSqlite ? runOk(['migrate'], options) : undefined;
  const services = [serve(t, [], options), serve(t, [], options)].map(async (starting) => {
    const { address } = await starting;
    // A file is upgraded before the service listens, a server's database while it does.
    assert.equal(await ready(address), isSqlite ? 200 : 503);
    await until('it is ready', async () => (await ready(address)) === 200, 120_000);
    return address;
  });
  await migrating;
  return Promise.all(services);
}

/** Reads random pages, and asserts that each is correct. */
function readAlways(address: string, token: string, goesOn: () => boolean) {
  const reads = { count: 0, slowestMs: 0, done: Promise.resolve() };
  reads.done = (async () => {
    while (goesOn()) {
      const after = Math.floor(Math.random() * (plants - 20));
      const sinceMs = performance.now();
      const path = `/plants?fields=id&limit=20&after=${after}`;
      const { status, json } = await call(address + path, 'GET', { token });
      assert.equal(status, 200);
      assert.deepEqual(
        json,
        Array.from({ length: 20 }, (_, at) => ({ id: after + at + 1 })),
      );
      reads.count++;
      reads.slowestMs = Math.max(reads.slowestMs, performance.now() - sinceMs);
    }
  })();
  return reads;
}

test('SQLite: an upgrade is in a backup: an older version can create one, but not restore it', async (t) => {
  const { folder, path, url } = databaseFile(t);
  await fill(path, 3);
  const program = newerProgram(t, { older: 'continue', sqlite: indexOfSqlite });
  await runOk(['migrate', '--database', url], { program });
  const backup = join(folder, 'backup.db');
  await runOk(['backup', backup, '--database', url]);
  const args = ['restore', backup, '--database', `sqlite:${join(folder, 'restored.db')}`];
  const { status, stderr } = await run(args);
  assert.equal(status, 1);
  assert.match(stderr, newerWords);
  await runOk(args, { program });
});

describe('PostgreSQL: an upgrade', { concurrency: 3 }, () => {
  test('has changed nothing if it gets SIGKILL half-way, and another process completes it', async (t) => {
    const setting = await blocked(t, column + backfill, 'SELECT FROM plant_store.plants');
    const first = setting.migrate();
    await until('it waits for the lock', setting.waits);
    first.child.kill('SIGKILL');
    await first.ended;
    assert.equal(await setting.number(), before);
    const service = await serve(t, [], setting);
    assert.equal(await ready(service.address), 503);
    assert.match(service.log(), /the database is being upgraded to a newer schema/);
    await setting.unblock();
    await until('the replica is ready', async () => (await ready(service.address)) === 200);
    assert.equal(await setting.number(), done);
    assert.equal(await setting.read(), 200);
  });

  test('is logged with its cause if it fails, and not retried with each request', async (t) => {
    const setting = await blocked(t, `SELECT nextval('attempts'); SELECT 1 / 0;`, 'SELECT 1');
    await setting.select('CREATE SEQUENCE attempts'); // which no rollback sets back
    const service = await serve(t, [], setting);
    await until('it is in the log', async () => {
      assert.equal(await ready(service.address), 503);
      return service.log().includes('division by zero');
    });
    for (let request = 0; request < 20; request++) assert.equal(await ready(service.address), 503);
    assert.deepEqual(await setting.select('SELECT last_value FROM attempts'), [
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
    for (const waits of [true, false, true, false])
      await until(`it waits: ${waits}`, async () => (await setting.waits()) === waits, 20_000);
    over.abort();
    await reading;
    assert.deepEqual([...statuses], [200]);
    await setting.unblock();
    assert.deepEqual(await ended, [0, null]);
    assert.equal(await setting.number(), done);
  });
});

/** A database of an older version, and a transaction that a statement of the migration waits for. */
async function blocked(t: TestContext, postgres: string, lock: string) {
  const database = await emptyDatabase(t, 'PostgreSQL');
  const { env, token, service } = await older(t, database);
  const program = newerProgram(t, { older: 'continue', postgres });
  const blocker = new Client({ connectionString: database.url });
  blocker.on('error', () => {}); // its database is dropped
  await blocker.connect();
  t.after(() => blocker.end());
  await blocker.query(`BEGIN; ${lock}`);
  const select = async (sql: string) =>
    (await query(database.url, sql)) as Record<string, unknown>[];
  return {
    env,
    program,
    select,
    read: async () => (await ask(service, token, 'GET')).status,
    unblock: () => blocker.query('COMMIT'),
    migrate: () => {
      const child = start(['migrate'], { env, program });
      t.after(() => child.kill('SIGKILL'));
      return { child, ended: once(child, 'close') };
    },
    /** Whether the migration waits for the lock. */
    waits: async () => {
      const rows = await select(
        `SELECT 1 FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%ALTER TABLE%'`,
      );
      return rows.length > 0;
    },
    async number() {
      const [row] = await select('SELECT version FROM plant_store.migrations');
      return row?.['version'];
    },
  };
}

const schema = migrations.schemaOf(migrations.newest);
/** The number of the schema before the upgrade, and after it. */
const before = encodeSchema(schema);
const done = encodeSchema({ ...schema, version: schema.version + 1 });
