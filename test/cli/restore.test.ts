import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it, type TestContext } from 'node:test';
import { restoreDatabase } from '../../src/sqlite/backup.ts';
import { resultCode } from '../../src/sqlite/errors.ts';
import { migrations, readSchema } from '../../src/sqlite/file/migrate.ts';
import { encodeSchema } from '../../src/shared/migrations.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { call, nextOf, startApp } from '../support/app.ts';
import { run, runOk, serve } from '../support/command.ts';
import { databaseFile, fill, soundIds, type DatabaseFile } from '../support/database.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { indexOfSqlite, newerProgram } from '../support/versions.ts';
import { identify } from '../support/tokens.ts';

const isNotRoot = process.getuid?.() !== 0 && 'only root can give files to others';

type Scope = Pick<TestContext, 'after'>;

/** A backup of a database with this many plants, in a folder of its own. */
async function backupOf(t: Scope, plants: number): Promise<string> {
  const { path, url } = databaseFile(t);
  await fill(path, plants);
  const copy = join(tempFolder(t), 'backup.db');
  await runOk(['backup', copy, '--database', url]);
  return copy;
}

/** What is in the folder, to the byte. */
function contentOf(folder: string): Record<string, string> {
  const files = readdirSync(folder).toSorted();
  return Object.fromEntries(
    files.map((file) => [file, readFileSync(join(folder, file)).toString('base64')]),
  );
}

/** Asserts that the backup is refused with these words and that nothing is changed anywhere. */
async function assertRefused(backup: string, target: DatabaseFile, words: RegExp): Promise<void> {
  const [before, beforeThere] = [contentOf(target.folder), contentOf(dirname(backup))];
  const { status, stdout, stderr } = await run(['restore', backup, '--database', target.url]);
  assert.deepEqual([status, stdout], [1, ''], stderr);
  const [, message = ''] = /^error: (.*)\n$/ms.exec(stderr) ?? [];
  assert.match(message, words);
  assert.ok(message.includes(backup), `it is about the backup: ${message}`);
  assert.ok(!message.includes(target.path), `and not about the database: ${message}`);
  assert.deepEqual(contentOf(target.folder), before);
  assert.deepEqual(contentOf(dirname(backup)), beforeThere);
}

async function existing(t: Scope, plants: number): Promise<DatabaseFile> {
  const target = databaseFile(t);
  await fill(target.path, plants);
  return target;
}

describe('restore', { concurrency: 2 }, () => {
  it('restores a backup to a new file, and leaves nothing else', async (t) => {
    const backup = await backupOf(t, 5);
    const before = readFileSync(backup);
    const { folder, path, url } = databaseFile(t);
    await runOk(['restore', backup, '--database', url]);
    assert.deepEqual(soundIds(path), [1, 2, 3, 4, 5]);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(folder), ['plants.db']);
    assert.deepEqual(readFileSync(backup), before, 'the backup stays as it is');
    assert.deepEqual(readdirSync(dirname(backup)), ['backup.db']);
  });

  it('gives a new database to the owner of its folder', { skip: isNotRoot }, async (t) => {
    const backup = await backupOf(t, 1);
    for (const args of [['restore', backup], ['migrate']]) {
      const { folder, path, url } = databaseFile(t);
      chownSync(folder, 65_534, 65_534);
      await runOk([...args, '--database', url]);
      assert.equal(statSync(path).uid, 65_534);
    }
  });

  it('keeps the database that it replaces, which is locked from before the copy', async (t) => {
    const backup = await backupOf(t, 5);
    const { folder, path } = await existing(t, 2);
    let attempts = 0;
    const kept = await restoreDatabase(backup, path, () => {
      using other = new DatabaseSync(path);
      assert.throws(() => other.exec('BEGIN IMMEDIATE'), { errcode: resultCode.busy });
      attempts++;
    });
    assert.ok(attempts > 0);
    assert.match(kept ?? '', /plants\.db\.before-restore-/);
    assert.deepEqual(soundIds(kept ?? ''), [1, 2]);
    assert.deepEqual(soundIds(path), [1, 2, 3, 4, 5]);
    assert.deepEqual(readdirSync(folder).length, 2);
  });

  it('also keeps the WAL of a killed server', async (t) => {
    const backup = await backupOf(t, 1);
    const { path, url } = databaseFile(t);
    const live = databaseFile(t);
    const token = await fill(live.path, 0);
    await using storage = new SqliteStorage(live.path, { create: false });
    const { caller } = (await identify(storage, token)) ?? assert.fail();
    for (const id of [10, 20, 30]) await storage.plants.create(caller, { id, name: 'Monstera' });
    for (const suffix of ['', '-wal']) copyFileSync(live.path + suffix, path + suffix); // as a kill leaves them
    assert.ok(statSync(`${path}-wal`).size > 0);
    const printed = await runOk(['restore', backup, '--database', url]);
    const [, kept = ''] = / is kept at (.*)\.$/.exec(printed) ?? [];
    assert.deepEqual(soundIds(kept), [10, 20, 30]);
    assert.deepEqual(soundIds(path), [1]);
  });

  it('restores plants, tokens and shares of the service, ends later shares, and ends cursors', async (t) => {
    const { path, url } = databaseFile(t);
    const token = await fill(path, 3);
    const backup = join(tempFolder(t), 'backup.db');
    const original = await startApp(t, {
      open: async () => new SqliteStorage(path, { create: false }),
    });
    await runOk(['share', 'alice', 'bob', 'read', '--database', url]);
    const next = nextOf(await original.call('GET', '/changes', { token }));
    await runOk(['backup', backup, '--database', url]);
    await runOk(['share', 'alice', 'carol', 'read', '--database', url]);
    const target = databaseFile(t);
    await runOk(['restore', backup, '--database', target.url]);
    const open = async () => new SqliteStorage(target.path, { create: false });
    const { address } = await startApp(t, { open });
    const { text } = await call(`${address}/plants?fields=id`, 'GET', { token });
    assert.equal(text, '[{"id":1},{"id":2},{"id":3}]');
    const shares = await call(`${address}/shares`, 'GET', { token });
    assert.deepEqual(shares.json, { given: [{ user: 'bob', access: 'read' }], received: [] });
    const json = { name: 'Monstera' };
    const { headers } = await call(`${address}/plants`, 'POST', { token, json });
    assert.equal(headers.get('location'), '/plants/4');
    const log = await runOk(['log', '--database', target.url]);
    assert.match(log, /"event":"backup-restored","name":"backup.db"\}\n.*"event":"created"/);
    // Also if the role has changed: the restore matters more.
    for (const cursor of [next, next.replace(/(after=[^&]*)\.\d+/, '$1.all')]) {
      const followed = await call(address + cursor, 'GET', { token });
      assert.deepEqual(
        [followed.status, (followed.json as { reason: string }).reason],
        [410, 'restored'],
      );
    }
    const begin = await call(`${address}/changes`, 'GET', { token });
    assert.equal((await call(address + nextOf(begin), 'GET', { token })).text, '[]');
  });
});

/** Changes that someone can make to a backup, and the message for each. */
const strangeSchemas: [what: string, sql: string, words: RegExp][] = [
  [
    'without a table',
    'DROP TABLE plants',
    / the database has no table "plants"\. Choose another file\.$/,
  ],
  ['without an index', 'DROP INDEX plants_by_owner', / has no index "plants_by_owner"/],
  ['without a trigger', 'DROP TRIGGER token_deleted', / has no trigger "token_deleted"/],
  [
    'whose trigger makes every user a manager',
    `CREATE TRIGGER greedy AFTER INSERT ON plants BEGIN UPDATE users SET role = 'manager'; END`,
    / has the unexpected trigger "greedy"\. Choose another file\.$/,
  ],
  [
    'whose trigger has our name and does something else',
    `DROP TRIGGER token_changed;
     CREATE TRIGGER token_changed AFTER UPDATE ON tokens BEGIN UPDATE users SET role = 'manager'; END`,
    / has a different trigger "token_changed"/,
  ],
  [
    'with a view in the place of a table',
    'ALTER TABLE plants RENAME TO more; CREATE VIEW plants AS SELECT * FROM more',
    / has no table "plants"/,
  ],
  [
    'with another column',
    `ALTER TABLE users ADD COLUMN note TEXT`,
    / has a different table "users"/,
  ],
  ['with another index', 'CREATE INDEX slow ON plants (name)', / has the unexpected index "slow"/],
  [
    'with a table of its own',
    `CREATE TABLE "a\x1b[2J" (b)`,
    / has the unexpected table "a\\u001b\[2J"/,
  ],
  [
    'from a newer Plant Store',
    `PRAGMA user_version = ${encodeSchema({ version: migrations.newest + 1, usableFrom: migrations.newest + 1 })}`,
    /was written by a newer Plant Store/,
  ],
  ['that no version created', 'PRAGMA user_version = 0', / is not a Plant Store backup/],
  [
    'with a plant that belongs to no user',
    `INSERT INTO plants VALUES (1, 9, 9, '', 'Monstera', 0)`,
    / is not a complete backup: a row of plants refers to a missing row of users/,
  ],
];

describe('restore accepts a backup', { concurrency: 2 }, () => {
  it('from an older version, and migrates it to the newest schema', async (t) => {
    const backup = await backupOf(t, 3);
    const program = newerProgram(t, { older: 'refused', sqlite: indexOfSqlite });
    const { path, url } = databaseFile(t);
    await runOk(['restore', backup, '--database', url], { program });
    using restored = new DatabaseSync(path);
    assert.equal(readSchema(restored).version, migrations.newest + 1);
    assert.deepEqual(soundIds(path), [1, 2, 3]);
  });

  it('with the statistics of ANALYZE', async (t) => {
    const backup = await backupOf(t, 3);
    using database = new DatabaseSync(backup);
    database.exec('ANALYZE');
    database.close();
    const { path, url } = databaseFile(t);
    await runOk(['restore', backup, '--database', url]);
    assert.deepEqual(soundIds(path), [1, 2, 3]);
  });
});

describe('restore is refused', () => {
  const backupOfFile = shared(async (t) => ({
    path: await backupOf(t, 1),
    target: await existing(t, 1),
  }));

  it('over the database of a running server, which keeps serving', async (t) => {
    const backup = await backupOf(t, 5);
    const { folder, path, url } = databaseFile(t);
    const token = await fill(path, 1);
    const service = await serve(t, ['--database', url]);
    const create = () =>
      call(`${service.address}/plants`, 'POST', { token, json: { name: 'Monstera' } });
    for (const ids of ['[{"id":1}]', '[{"id":1},{"id":2}]']) {
      const { status, stdout, stderr } = await run(['restore', backup, '--database', url]);
      assert.deepEqual([status, stdout], [1, '']);
      const message = `${path} is in use. Stop every process that has it open, and try again.`;
      assert.equal(stderr, `error: ${message}\n`);
      const { text } = await call(`${service.address}/plants?fields=id`, 'GET', { token });
      assert.equal(text, ids);
      assert.equal((await create()).status, 201);
    }
    const ours = readdirSync(folder).filter((file) => !/^plants\.db(-wal|-shm)?$/.test(file));
    assert.deepEqual(ours, []);
    assert.equal(await service.stop(), 0);
    assert.deepEqual(soundIds(path), [1, 2, 3]);
  });

  it("of a text, an empty file and another program's database", async (t) => {
    const inFolder = (name: string) => join(tempFolder(t), name);
    const [text, empty, foreign] = [inFolder('text'), inFolder('empty'), inFolder('foreign')];
    writeFileSync(text, 'Monstera, indoor\n'.repeat(100));
    writeFileSync(empty, '');
    using other = new DatabaseSync(foreign);
    other.exec('CREATE TABLE plants (name); PRAGMA user_version = 1');
    for (const target of [await existing(t, 1), databaseFile(t)]) {
      for (const backup of [text, empty, foreign])
        await assertRefused(backup, target, /is not a Plant Store backup/);
    }
  });

  it('of a damaged or truncated backup', async (t) => {
    const damages: ((backup: string, bytes: Buffer) => void)[] = [
      (backup, bytes) => writeFileSync(backup, bytes.fill(0xaa, 40 * 4096, 60 * 4096)),
      (backup, bytes) => writeFileSync(backup, bytes.fill(0xaa, 100, 4096)),
      (backup, bytes) => truncateSync(backup, Math.floor(bytes.length / 2 / 4096) * 4096),
      (backup, bytes) => truncateSync(backup, bytes.length - 100),
      (backup) => truncateSync(backup, 1_000),
    ];
    const whole = await backupOf(t, 500);
    const target = await existing(t, 1);
    for (const damage of damages) {
      const backup = join(tempFolder(t), 'backup.db');
      const bytes = readFileSync(whole);
      writeFileSync(backup, bytes);
      damage(backup, bytes);
      await assertRefused(backup, target, /is damaged/);
    }
  });

  for (const [what, sql, words] of strangeSchemas) {
    it(`of a backup ${what}`, async (t) => {
      const backup = join(tempFolder(t), 'backup.db');
      copyFileSync(backupOfFile().path, backup);
      using database = new DatabaseSync(backup);
      database.exec(`PRAGMA foreign_keys = OFF; ${sql}`);
      database.close();
      await assertRefused(backup, backupOfFile().target, words);
    });
  }
});

describe('restore next to other files', () => {
  it('refuses the log of a deleted database, which SQLite would apply', async (t) => {
    const backup = await backupOf(t, 5);
    const target = databaseFile(t);
    for (const suffix of ['-wal', '-shm', '-journal']) {
      writeFileSync(target.path + suffix, 'left');
      const { status, stderr } = await run(['restore', backup, '--database', target.url]);
      assert.equal(status, 1);
      assert.ok(stderr.includes(`${target.path}${suffix} belong`), stderr);
      assert.deepEqual(readdirSync(target.folder), [`${basename(target.path)}${suffix}`]);
      rmSync(target.path + suffix);
    }
  });

  it('replaces the target of a symbolic link, and keeps its mode and the link', async (t) => {
    const backup = await backupOf(t, 5);
    const real = await existing(t, 2);
    chmodSync(real.path, 0o640);
    const link = join(tempFolder(t), 'link.db');
    symlinkSync(real.path, link);
    await runOk(['restore', backup, '--database', `sqlite:${link}`]);
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.equal(soundIds(real.path).length, 5);
    assert.equal(statSync(real.path).mode & 0o777, 0o640);
  });
});
