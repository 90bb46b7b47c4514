/**
 * Which files can be opened as a database, and the message for each one that cannot.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it, type TestContext } from 'node:test';
import { reasonOf } from '../../src/cli/errors.ts';
import { openDatabase, refuseUnsafeSqlite } from '../../src/sqlite/file/open.ts';
import { nowMs } from '../../src/sqlite/file/locks.ts';
import { newestVersion, versionOf } from '../../src/sqlite/file/migrate.ts';
import { encodeSchema } from '../../src/shared/migrations.ts';
import { Refusal } from '../../src/refusal.ts';
import { run, runOk } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';
import { unprivileged, withoutUnprivileged } from '../support/unprivileged.ts';

const create = { create: true };
const dontCreate = { create: false };
const dontMigrate = { create: false, migrates: false };

/** Asserts that opening fails with this message and leaves the file unchanged. */
function assertRefused(path: string, message: RegExp, options = create): void {
  const read = () => (statSync(path).isFile() ? readFileSync(path) : undefined);
  const before = read();
  assert.throws(
    () => openDatabase(path, options).close(),
    (error) => {
      assert.ok(error instanceof Refusal, String(error));
      assert.match(reasonOf(error) ?? '', message);
      return error.message.includes(path);
    },
  );
  assert.deepEqual(read(), before);
}

function foreignDatabase(path: string): void {
  using database = new DatabaseSync(path);
  database.exec('CREATE TABLE notes (text); PRAGMA user_version = 1');
}

function setVersion(path: string, version: number): void {
  using database = new DatabaseSync(path);
  const number = encodeSchema({ version, usableFrom: version });
  database.exec(`PRAGMA user_version = ${number}; PRAGMA journal_mode = DELETE`);
}

describe('opening a database', () => {
  it('creates a file that only its owner can read, with every umask', (t) => {
    const { folder, path } = databaseFile(t);
    const umask = process.umask(0);
    t.after(() => process.umask(umask));
    const database = openDatabase(path, create);
    t.after(() => database.close());
    database.exec("INSERT INTO stores (name) VALUES ('main')"); // creates the WAL
    const modes = readdirSync(folder).map((file) => [
      file,
      statSync(join(folder, file)).mode & 0o777,
    ]);
    assert.deepEqual(modes, [
      ['plants.db', 0o600],
      ['plants.db-shm', 0o600],
      ['plants.db-wal', 0o600],
    ]);
  });

  it('creates the newest schema in a new file', (t) => {
    using database = openDatabase(databaseFile(t).path, create);
    assert.equal(versionOf(database), newestVersion);
    assert.ok(newestVersion >= 1);
  });

  it('keeps the content of an existing database', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 3);
    openDatabase(path, dontCreate).close();
    openDatabase(path, dontMigrate).close();
    assert.deepEqual(soundIds(path), [1, 2, 3]);
  });

  it('lets several processes create and migrate the same new file at the same time', async (t) => {
    const folder = tempFolder(t);
    for (let round = 0; round < 3; round++) {
      const path = join(folder, `${round}.db`);
      const migrate = () => run(['migrate', '--database', `sqlite:${path}`]);
      const outcomes = await Promise.all([migrate(), migrate(), migrate()]);
      for (const { status, stderr } of outcomes) assert.deepEqual([status, stderr], [0, '']);
      assert.deepEqual(soundIds(path), []);
    }
  });

  it('treats names with a special meaning in SQLite as file names', async (t) => {
    const names = [':memory:', 'file:plants.db?mode=memory', 'a ? b # c % 41.db'];
    const folder = tempFolder(t);
    for (const name of names) {
      await runOk(['migrate', '--database', `sqlite:./${name}`], { cwd: folder });
      assert.deepEqual(soundIds(join(folder, name)), []);
    }
    assert.deepEqual(readdirSync(folder).toSorted(), names.toSorted());
  });
});

describe('a database is refused', () => {
  it('if it does not exist and must not be created', (t) => {
    const { folder, path } = databaseFile(t);
    for (const open of [
      () => openDatabase(path, dontCreate),
      () => openDatabase(path, dontMigrate),
    ]) {
      assert.throws(open, { name: 'Refusal', message: `There is no database at ${path}.` });
    }
    assert.deepEqual(readdirSync(folder), []);
  });

  it('in a folder that does not exist', (t) => {
    const path = join(tempFolder(t), 'nowhere', 'plants.db');
    assert.throws(() => openDatabase(path, create), {
      name: 'Refusal',
      kind: 'cannot-create',
      message: /the folder does not exist\.$/,
    });
  });

  it('if it is empty, because it has lost its content', (t) => {
    const { folder, path } = databaseFile(t);
    writeFileSync(path, '');
    writeFileSync(`${path}-wal`, 'SQLite would delete this');
    for (const options of [create, dontCreate]) {
      assertRefused(path, /is empty: .* Restore a backup, or delete the file to start/, options);
    }
    assert.deepEqual(readdirSync(folder), ['plants.db', 'plants.db-wal']);
  });

  it('if it is missing, but files that belong to it are left', (t) => {
    for (const suffix of ['-wal', '-shm', '-journal']) {
      const { folder, path } = databaseFile(t);
      writeFileSync(path + suffix, '');
      assert.throws(() => openDatabase(path, create), {
        name: 'Refusal',
        message: new RegExp(`${suffix} belong to a database that is no longer at ${path}`),
      });
      assert.deepEqual(readdirSync(folder), [`plants.db${suffix}`]);
    }
  });

  it('if the path is a folder', (t) => {
    assertRefused(tempFolder(t), /is not a file\. Choose a database file with --database\.$/);
  });

  it('if the file is text', (t) => {
    const { path } = databaseFile(t);
    writeFileSync(path, 'Monstera, indoor\n'.repeat(100));
    assertRefused(path, /is not an SQLite database\. Choose another file with --database\.$/);
  });

  it('if it belongs to another program', (t) => {
    const { folder, path } = databaseFile(t);
    foreignDatabase(path);
    assertRefused(path, /is an SQLite database of another program\. Choose another file/);
    assert.deepEqual(readdirSync(folder), ['plants.db']);
  });

  it('if a newer Plant Store wrote it, with and without migrating', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 1);
    setVersion(path, newestVersion + 1);
    const message =
      /written by a newer Plant Store \(schema \d+, this version supports up to \d+\)\.$/;
    assert.throws(() => openDatabase(path, dontCreate), message);
    assert.throws(() => openDatabase(path, dontMigrate), message);
    assert.deepEqual(soundIds(path), [1]);
    setVersion(path, newestVersion);
    openDatabase(path, dontCreate).close();
  });

  it('if its first page is damaged', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 1);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0xaa, 100, 4096));
    assertRefused(path, /is damaged\. Keep this file, and restore a backup to another path\.$/);
  });

  it('if another process keeps it locked until the deadline, also without a -shm file', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 0);
    using holder = new DatabaseSync(path);
    holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    const deadlineMs = nowMs() + 1_000;
    const open = () => openDatabase(path, { ...dontCreate, deadlineMs });
    assert.throws(open, {
      name: 'Refusal',
      message: /is locked by another process, and .*-shm is/,
    });
    assert.ok(nowMs() > deadlineMs);
  });

  it('if this version of SQLite can corrupt a database that several processes use', () => {
    for (const version of ['3.51.3', '3.52.0', '4.0.0', process.versions['sqlite'] ?? '0']) {
      assert.doesNotThrow(() => refuseUnsafeSqlite(version), version);
    }
    for (const version of ['3.51.2', '3.50.9', '2.99.99', '0']) {
      assert.throws(() => refuseUnsafeSqlite(version), {
        name: 'Refusal',
        message: /needs SQLite 3\.51\.3 or later: update Node\.$/,
      });
    }
  });
});

const skip = withoutUnprivileged;
// In parallel, because most of the time is spent waiting.
describe('an inaccessible database is refused', { concurrency: true, skip }, () => {
  async function refusal(t: TestContext, prepare: (folder: string, path: string) => void) {
    const folder = join(tempFolder(t), 'store');
    const path = join(folder, 'plants.db');
    mkdirSync(folder);
    prepare(folder, path);
    chmodSync(join(folder, '..'), 0o755);
    const outcome = await run(['migrate', '--database', `sqlite:${path}`], unprivileged);
    chmodSync(folder, 0o700); // so that it can be deleted
    assert.equal(outcome.status, 1, outcome.stderr);
    return outcome.stderr;
  }

  const writeAccessNeeded =
    /^error: Cannot write to .* \(permission denied\)\. SQLite needs write access to both\. Fix the permissions, or choose another path/;

  it('a file without write permission', async (t) => {
    const stderr = await refusal(t, (folder, path) => {
      openDatabase(path, create).close();
      chmodSync(path, 0o444);
      chmodSync(folder, 0o777);
    });
    if (stderr !== undefined) assert.match(stderr, writeAccessNeeded);
  });

  it('a file in a folder without write permission', async (t) => {
    const stderr = await refusal(t, (folder, path) => {
      openDatabase(path, create).close();
      chmodSync(path, 0o666);
      chmodSync(folder, 0o555);
    });
    if (stderr !== undefined) assert.match(stderr, writeAccessNeeded);
  });

  it('a new file in a folder without write permission', async (t) => {
    const stderr = await refusal(t, (folder) => chmodSync(folder, 0o555));
    if (stderr !== undefined) {
      assert.match(
        stderr,
        /^error: .*plants\.db cannot be created: permission denied\. Choose another path/,
      );
    }
  });

  it('a file without read permission', async (t) => {
    const stderr = await refusal(t, (folder, path) => {
      openDatabase(path, create).close();
      chmodSync(path, 0o000);
      chmodSync(folder, 0o777);
    });
    if (stderr !== undefined) assert.match(stderr, writeAccessNeeded);
  });

  it('a file that another process keeps locked', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 0);
    using holder = new DatabaseSync(path);
    holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    const { status, stderr } = await run(['migrate', '--database', url]);
    assert.equal(status, 1);
    assert.match(stderr, /^error: .*plants\.db is locked by another process, and .* Try again/);
  });
});
