/**
 * An index over a million plants, which takes longer than any limit of time that the service has: 3 seconds
 * for a statement, 4 for its answer, and 5 for SQLite's lock. An older version reads meanwhile, under load.
 */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import { call } from './support/app.ts';
import { runOk, serve } from './support/command.ts';
import { ledger } from './support/ledger.ts';
import { query } from './support/postgres.ts';
import { it, storageOf, emptyDatabase, type TestDatabase } from './support/storages.ts';
import { until } from './support/until.ts';
import { newerProgram } from './support/versions.ts';

const plants = 1_000_000;
const maxLimitMs = 10_000;
const users = 8;

/** The expressions are costly, so that a million rows are enough. */
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
  await fillWithMany(database);
  const store = ['--store', 'ledger', '--role', 'manager'];
  const older = await serve(t, ['--log-level', 'silent'], { env });
  const addresses = [older.address];
  const book = ledger(addresses, await runOk(['token', 'create', 'maria', ...store], { env }));
  await book.begin();
  let goesOn = true;
  t.after(() => (goesOn = false)); // else it would ask for ever if the test fails
  const work = Array.from({ length: users }, (_, user) => book.work(user + 1, () => goesOn));
  const reads = readAlways(older.address, reader, () => goesOn);
  const created = () => book.counts['POST 201'] ?? 0;
  await until('there is load', () => created() > 100);

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
  await until('all accept writes', () => created() > createdThen + 100, 30_000);
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
    const ready = async () => (await call(`${address}/readyz`, 'GET')).status;
    // A file is upgraded before the service listens, a server's database while it does.
    assert.equal(await ready(), isSqlite ? 200 : 503);
    await until('it is ready', async () => (await ready()) === 200, 120_000);
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

async function fillWithMany({ url }: TestDatabase): Promise<void> {
  if (!url.startsWith('sqlite:')) {
    await query(
      url,
      `INSERT INTO plant_store.plants (store, id, owner, tag, name)
       SELECT store, plant, id, '', 'plant ' || plant
       FROM plant_store.users, generate_series(1, ${plants}) AS plant;
       UPDATE plant_store.stores SET last_id = ${plants}`,
    );
    return;
  }
  using database = new DatabaseSync(url.slice('sqlite:'.length));
  database.exec(`
    WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${plants})
    INSERT INTO plants (store, id, owner, tag, name)
    SELECT store, id, user, '', 'plant ' || id FROM users, ids ORDER BY id;
    UPDATE stores SET last_id = ${plants}`);
}
