import assert from 'node:assert/strict';
import {
  copyFileSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it, type TestContext } from 'node:test';
import type { Caller, TokenCredential } from '../../src/access/access.ts';
import { binStart, maxPosition } from '../../src/log/change-log.ts';
import { shownFields } from '../../src/plants/fields.ts';
import { Connection, type OpenConnection } from '../../src/sqlite/connection.ts';
import { preparerOf } from '../../src/sqlite/driver.ts';
import { nowMs } from '../../src/sqlite/file/locks.ts';
import { toSqlite } from '../../src/sqlite/dialect.ts';
import { listSql } from '../../src/sqlite/tables/plant-lists.ts';
import { grantSql } from '../../src/sql/grants.ts';
import { logSql } from '../../src/sql/log.ts';
import { retentionSql } from '../../src/sql/retention.ts';
import { shareSql } from '../../src/sql/shares.ts';
import { tokenSql, tokenWrites } from '../../src/sql/tokens.ts';
import { userSql } from '../../src/sql/users.ts';
import { searchSql, webhookSql } from '../../src/sql/webhooks.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { openGrants } from '../../src/sqlite/tables/grants.ts';
import { openStatements, perform } from '../../src/sqlite/tables/statements.ts';
import { openTables } from '../../src/sqlite/tables/tables.ts';
import type { Problem } from '../../src/problem.ts';
import { ReadBatcher } from '../../src/sqlite/read-batcher.ts';
import { credentialOf } from '../../src/access/token.ts';
import { changeContract } from '../change.contract.ts';
import { quotaContract } from '../quota.contract.ts';
import { shareContract } from '../share.contract.ts';
import { userContract } from '../user.contract.ts';
import { storageContract } from '../storage.contract.ts';
import { creationOf } from '../../src/plants/changes.ts';
import { addToken } from '../support/app.ts';
import { commitsOf } from '../support/commits.ts';
import { withIds } from '../support/many-rows.ts';
import { idsOf, sharedScene } from '../support/scene.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { identify } from '../support/tokens.ts';
import { until } from '../support/until.ts';

let path = '';

async function open(t: TestContext): Promise<SqliteStorage> {
  path = join(tempFolder(t), 'plants.db');
  return openAgain(t);
}

async function openAgain(t: TestContext): Promise<SqliteStorage> {
  const storage = new SqliteStorage(path, { create: true });
  t.after(() => storage[Symbol.asyncDispose]());
  return storage;
}

const scene = sharedScene('SQLite');
storageContract('SQLite', scene);
shareContract('SQLite', scene);
userContract('SQLite', scene);
changeContract('SQLite', scene);
quotaContract('SQLite', scene);

class RecordingDatabase extends DatabaseSync {
  readonly statements: string[] = [];

  override prepare(sql: string) {
    this.statements.push(sql);
    return super.prepare(sql);
  }
}

function planOf(database: DatabaseSync, sql: string | undefined): string[] {
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  return plan.map(({ detail }) => String(detail));
}

it('SQLite: every request reads a range of an index, without table scans or sorts', async (t) => {
  await open(t);
  using database = new RecordingDatabase(path);
  openTables(database, { quotas: { perUser: 1, perStore: 1 } });
  const lists = (['store', 'owner'] as const).map((kind) => listSql(kind, shownFields, 'read'));
  const tables = [
    grantSql,
    logSql,
    retentionSql,
    searchSql,
    shareSql,
    tokenSql,
    userSql,
    webhookSql,
  ];
  const written = tables.flatMap((all) => Object.values(all).map(({ text }) => toSqlite(text)));
  const statements = [...database.statements, ...written, ...lists];
  assert.ok(statements.length > 40);
  const exceptions = statements.filter((sql) => {
    return planOf(database, sql).some(
      (step) =>
        /^SCAN (?!\(subquery|CONSTANT ROW|reach |given\b|chain$|oldest_[12]$|of_both$|in_effect$|received$|merged$|grant_changes$)/.test(
          step,
        ) || step.includes('TEMP B-TREE'),
    );
  });
  const expected = Object.values(grantSql).map(({ text }) => toSqlite(text)); // they sort the shares of a user
  expected.push(toSqlite(shareSql.ofUser.text));
  assert.deepEqual(exceptions, expected);
});

it('SQLite: a list uses its own index, with all bounds', async (t) => {
  await open(t);
  using database = new RecordingDatabase(path);
  const searchesOf = (sql: string | undefined) =>
    planOf(database, sql).filter((step) => step.includes('plants'));
  for (const [kind, expected] of [
    ['store', 'SEARCH plants USING PRIMARY KEY (store=? AND id>?)'],
    ['owner', 'SEARCH plants USING COVERING INDEX plants_by_owner (store=? AND owner=? AND id>?)'],
  ] as const) {
    const searches = searchesOf(listSql(kind, ['name', 'tag'], 'read'));
    // The end of the page, the page itself, and whether more plants follow.
    assert.equal(searches.length, 3);
    for (const search of searches) assert.equal(search.replace(' AND id<?', ''), expected);
    assert.equal(searches.filter((search) => search.includes('id<?')).length, 1); // the page ends there
  }
  openTables(database);
  const key = 'SEARCH plants USING COVERING INDEX plants_by_owner (store=? AND owner=? AND';
  // The first plant of each owner, the next one after each plant, and the fields of each.
  const merge = database.statements.find((sql) => sql.includes('WITH RECURSIVE merged'));
  assert.deepEqual(searchesOf(merge), [`${key} id>?)`, `${key} id>?)`, `${key} id=?)`]);
});

/** Empty if the descriptor was closed meanwhile. */
function readlinkOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}

async function callerOf(storage: SqliteStorage, token: string): Promise<Caller> {
  return ((await identify(storage, token)) ?? assert.fail()).caller;
}

/** Identifies the caller, then reads the first page, as a request does. */
async function firstPage(storage: SqliteStorage, token: string): Promise<number[]> {
  return idsOf(storage, await callerOf(storage, token), { limit: 100 });
}

it('SQLite: a long list of many owners leaves time for other requests', async (t) => {
  const storage = await open(t);
  const alice = await callerOf(storage, await addToken(storage, 'alice'));
  await addToken(storage, 'bob');
  // Every fifth plant is of alice.
  using database = new DatabaseSync(path);
  database.exec(`
    INSERT INTO plants (store, id, owner, tag, name) ${withIds(50_000)}
    SELECT store, id, iif(id % 5 = 0, ${alice.user}, ${alice.user} + 1), 't', 'n' FROM stores, ids`);
  const others = Array.from({ length: 999 }, (_, at) => alice.user + 2 + at);
  const caller = { ...alice, read: [alice.user, ...others] };
  const expected = Array.from({ length: 10_000 }, (_, at) => 5 * (at + 1));
  for (const filter of [{}, { tag: 't' }, { q: 'N' }]) {
    let turns = 0;
    let next = setImmediate(function count() {
      turns++;
      next = setImmediate(count);
    });
    const ids = await idsOf(storage, caller, { limit: 10_000, fields: ['id'], ...filter });
    clearImmediate(next);
    assert.deepEqual(ids, expected);
    // 50 steps take several time slices.
    assert.ok(turns > 1, `${turns} turns of the event loop`);
  }
});

it('SQLite: reads end with their turn of the event loop, so the WAL can be reset', async (t) => {
  const storage = await open(t);
  const alice = await addToken(storage, 'alice');
  const writer = new DatabaseSync(path);
  t.after(() => writer.close());
  for (let turn = 0; turn < 10; turn++) {
    await storage.plants.create(await callerOf(storage, alice), { name: 'Monstera' });
    await Promise.all([firstPage(storage, alice), firstPage(storage, alice)]);
    await new Promise<void>((resolve) => process.nextTick(resolve));
    assert.equal(writer.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'], 0);
  }
});

it('SQLite: a read that fails does not affect other reads of its batch', async (t) => {
  await open(t);
  const connection = new Connection({ path, cacheKiB: 1_000 });
  t.after(() => connection.close());
  const batcher = new ReadBatcher(connection);
  const count = ({ database }: OpenConnection) =>
    database.prepare('SELECT count(*) FROM plants').get();
  const wrong = ({ database }: OpenConnection) => database.prepare('SELECT nothing').get();
  const results = await Promise.allSettled([batcher.read(wrong), batcher.read(count)]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'fulfilled'],
  );
});

it('SQLite: disposal waits for reads and closes all files', async (t) => {
  const storage = await open(t);
  const alice = await addToken(storage, 'alice');
  const found = callerOf(storage, alice);
  await storage[Symbol.asyncDispose]();
  assert.ok(await found);
  await new Promise(setImmediate);
  const files = readdirSync('/proc/self/fd').map((fd) => readlinkOf(`/proc/self/fd/${fd}`));
  assert.deepEqual(
    files.filter((file) => file.startsWith(path)),
    [],
  );
});

it('SQLite: recovers after a page of the file could not be read', async (t) => {
  const storage = await open(t);
  const [alice, bob] = [await addToken(storage, 'alice'), await addToken(storage, 'bob')];
  await storage.plants.create(await callerOf(storage, alice), { name: 'Monstera' });
  const database = new DatabaseSync(path);
  t.after(() => database.close());
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const tokens = database.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'tokens'`).get();
  const pageBytes = 4_096;
  const at = (Number(tokens?.['rootpage']) - 1) * pageBytes;
  const file = openSync(path, 'r+'); // left open: closing it would release SQLite's locks in this process
  const page = Buffer.alloc(pageBytes);
  readSync(file, page, 0, pageBytes, at);

  writeSync(file, Buffer.alloc(pageBytes), 0, pageBytes, at);
  const [cached, uncached] = await Promise.allSettled([
    callerOf(storage, alice),
    callerOf(storage, bob),
  ]);
  assert.equal(cached.status, 'fulfilled');
  assert.equal(uncached.status, 'rejected');
  writeSync(file, page, 0, pageBytes, at);
  assert.ok(await callerOf(storage, bob));
});

const ways: [how: string, lose: () => void, message: RegExp][] = [
  ['moved', () => renameSync(path, `${path}.moved`), /db was moved or deleted .* Put it back/],
  ['deleted', () => rmSync(path), /db was moved or deleted/],
  ['moved with its folder', () => renameSync(dirname(path), `${dirname(path)}.moved`), /moved/],
  ['without its WAL', () => rmSync(`${path}-wal`), /db-wal was moved or deleted/],
  ['without its WAL index', () => rmSync(`${path}-shm`), /db-shm was moved or deleted/],
  [
    'replaced',
    () => {
      copyFileSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
    },
    /db was replaced by another file/,
  ],
  [
    'truncated by half',
    () => truncateSync(path, Math.floor(statSync(path).size / 8_192) * 4_096),
    /was truncated from \d+ to \d+ bytes/,
  ],
  ['truncated to nothing', () => truncateSync(path), /was truncated from \d+ to 0 bytes/],
];

/** A file with everything in it, and nothing in the WAL. */
const template = shared(async (t) => {
  const file = join(tempFolder(t), 'plants.db');
  await using storage = new SqliteStorage(file, { create: true });
  return { file, token: await addToken(storage, 'alice') };
});

async function openToLose(t: TestContext) {
  const { file, token } = template();
  path = join(tempFolder(t), 'plants.db');
  copyFileSync(file, path);
  const causes: unknown[] = [];
  const onFailure = (cause: unknown) => void causes.push(cause);
  const storage = new SqliteStorage(path, { create: false, onFailure });
  t.after(() => storage[Symbol.asyncDispose]());
  return { token, storage, causes };
}

const unavailable = { kind: 'storage-unavailable' };

for (const [how, lose, message] of ways) {
  it(`SQLite: nothing is written to a file that is ${how}, and reads end`, async (t) => {
    const { token, storage, causes } = await openToLose(t);
    t.after(() => rmSync(`${dirname(path)}.moved`, { recursive: true, force: true }));
    const alice = await callerOf(storage, token);
    await storage.plants.create(alice, { name: 'before' });
    lose();
    await assert.rejects(storage.plants.create(alice, { name: 'after' }), unavailable);
    await until('the loss is noticed', () => causes.length > 0);
    await assert.rejects(firstPage(storage, token), unavailable);
    await assert.rejects(storage.check(), unavailable);
    assert.equal(causes.length, 1);
    assert.match(String(causes), message);
  });
}

it('SQLite: the uses of tokens of many stores share commits', async (t) => {
  const storage = await open(t);
  const tokens: TokenCredential[] = [];
  for (let store = 1; store <= 32; store++) {
    tokens.push(credentialOf(await addToken(storage, 'alice', { store: `${store}` })));
  }
  const record = async ({ store, tokenHash }: TokenCredential) =>
    storage.identity.recordUses(store, 60_000, [tokenHash]);
  const { commits, writes } = await commitsOf(async () => {
    await Promise.all(tokens.map(record));
  });
  assert.equal(writes, tokens.length);
  assert.ok(commits <= 2, `${commits} commits`);
});

it('SQLite: plants are counted again after a rollback, and not after a write that moves none', async (t) => {
  const storage = await open(t);
  const alice = await callerOf(storage, await addToken(storage, 'alice'));
  const quotas = { perUser: 3, perStore: undefined };
  const connection = new Connection({ path, cacheKiB: 1_000, quotas });
  t.after(() => connection.close());
  const write = (work: (tables: OpenConnection) => void) =>
    connection.read((opened) => connection.write(() => work(opened), nowMs() + 1_000));
  const create = (fails = false) =>
    write(({ plants }) => {
      plants.change(creationOf(alice, { name: 'Monstera' }));
      if (fails) throw new Error('rolled back');
    });
  create();
  create();
  assert.throws(() => create(true), /rolled back/);
  create();
  write(({ database }) => database.exec('DELETE FROM plants'));
  write((opened) => perform(opened, tokenWrites.recordUses(alice.store, 0, [])));
  assert.throws(create, { kind: 'quota-exceeded' });
});

it('SQLite: a change has an unknown outcome if its file is lost during the commit', async (t) => {
  await open(t);
  const connection = new Connection({ path, cacheKiB: 1_000 });
  t.after(() => connection.close());
  const database = connection.read((opened) => opened.database);
  const exec = database.exec.bind(database);
  database.exec = (sql) => {
    if (sql === 'COMMIT') renameSync(path, `${path}.moved`);
    exec(sql);
  };
  const write = () => connection.write(({ stores }) => stores.add('other'), nowMs() + 1_000);
  assert.throws(write, { kind: 'outcome-unknown' });
});

it('SQLite: nothing is written for a user whom the same group of writes removes', async (t) => {
  const storage = await open(t);
  const alice = await callerOf(storage, await addToken(storage, 'alice'));
  const outcomes = await Promise.all([
    storage.plants.delete(alice, 1), // compares the version of the grants, as each write does
    storage.users.remove(alice, 2),
    storage.plants.create(alice, { name: 'Monstera' }).catch(({ kind }: Problem) => kind),
  ]);
  assert.deepEqual(outcomes, [undefined, true, 'invalid-token']);
});

it('SQLite: the logs of stores are apart, however large the numbers of stores and positions', async (t) => {
  const storage = await open(t);
  using database = new DatabaseSync(path);
  const names = ['one', 'two', 'three'];
  const position = maxPosition - 100;
  for (const [at, name] of names.entries()) {
    const [number, store] = [2 ** 20 - names.length + at, 2 ** 48 - names.length + at];
    const row = `${number}, ${store}, '${name}', ${position}`;
    database.exec(`INSERT INTO stores (number, store, name, position) VALUES (${row})`);
  }
  const callers = await Promise.all(
    names.map(async (store) =>
      callerOf(storage, await addToken(storage, 'alice', { store, role: 'manager' })),
    ),
  );
  const events = ['user-created', 'token-created', 'created', 'deleted', 'restored', 'deleted'];
  for (const [at, caller] of callers.entries()) {
    await storage.plants.create(caller, { name: `of ${names[at]}`, id: 1 });
    await storage.plants.delete(caller, 1);
    await storage.plants.restore(caller, 1);
    await storage.plants.delete(caller, 1);
  }
  for (const [at, caller] of callers.entries()) {
    const store = String(names[at]);
    const { changes } = await storage.log.list({ store, limit: 100 });
    assert.deepEqual(
      changes.map((change) => [change.position - position, change.event]),
      events.map((event, index) => [index + 1, event]),
    );
    assert.equal((await storage.log.history(caller, 1, 100))?.length, 4);
    const { plants } = await storage.log.deleted(caller, { after: binStart, limit: 10 });
    assert.deepEqual(
      plants.map(({ name }) => name),
      [`of ${store}`],
    );
  }
  assert.throws(() => database.exec(`UPDATE stores SET position = ${maxPosition}`), /CHECK/);
  await storage.log.removeOld(Infinity, 2 ** 48 - 1); // of the last store
  const left = await Promise.all(names.map((store) => storage.log.list({ store, limit: 100 })));
  assert.deepEqual(
    left.map(({ changes }) => changes.length),
    [events.length, events.length, 0],
  );
});

it('SQLite: a token that is revoked while its grant is read cannot write', async (t) => {
  const storage = await open(t);
  const token = await addToken(storage, 'alice');
  using database = new DatabaseSync(path);
  using other = new DatabaseSync(path);
  let isRevoked = false;
  database.function('revoke_once', () => {
    if (!isRevoked) other.exec('UPDATE tokens SET revoked_at = 1');
    isRevoked = true;
    return 1;
  });
  database.exec('CREATE TEMP VIEW tokens AS SELECT * FROM main.tokens WHERE revoke_once()');
  const grants = openGrants(preparerOf(database), openStatements(preparerOf(database)));
  // Outside a transaction, as after a failed read of the same batch.
  const grant = grants.current(credentialOf(token));
  assert.ok(grant !== undefined && isRevoked);
  grants.clearVersion(); // as each transaction does if another connection has written
  assert.throws(() => grants.callerSince(grant.caller.store, grant.caller.identified), {
    kind: 'invalid-token',
  });
});
