/**
 * What is opened as a database, what is refused, and with which words.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it, type TestContext } from 'node:test';
import { reasonOf } from '../../src/cli/reason.ts';
import { openAsItIs, openDatabase, refuseUnsafeSqlite } from '../../src/sqlite/database.ts';
import { newestVersion, versionOf } from '../../src/sqlite/migrate.ts';
import { Refusal } from '../../src/refusal.ts';
import { run, runOk } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';

const create = { create: true };
const dontCreate = { create: false };

/** Asserts a refusal with these words, after which the file is as it was. */
function assertRefused(path: string, words: RegExp, options = create): void {
  const bytesOf = () => (statSync(path).isFile() ? readFileSync(path) : undefined);
  const before = bytesOf();
  assert.throws(
    () => openDatabase(path, options).close(),
    (error) => {
      assert.ok(error instanceof Refusal, String(error));
      assert.match(reasonOf(error) ?? '', words);
      return error.message.includes(path);
    },
  );
  assert.deepEqual(bytesOf(), before);
}

function foreignDatabase(path: string): void {
  using database = new DatabaseSync(path);
  database.exec('CREATE TABLE notes (text); PRAGMA user_version = 1');
}

function setVersion(path: string, version: number): void {
  using database = new DatabaseSync(path);
  database.exec(`PRAGMA user_version = ${version}; PRAGMA journal_mode = DELETE`);
}

describe('opening a database', () => {
  it('makes a file that only its owner may read, whatever the umask', (t) => {
    const { folder, path } = databaseFile(t);
    const umask = process.umask(0);
    t.after(() => process.umask(umask));
    const database = openDatabase(path, create);
    t.after(() => database.close());
    database.exec("INSERT INTO stores (name) VALUES ('main')"); // so that there is a WAL
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

  it('brings a new file to the newest schema', (t) => {
    using database = openDatabase(databaseFile(t).path, create);
    assert.equal(versionOf(database), newestVersion);
    assert.ok(newestVersion >= 1);
  });

  it('leaves what is in a file of ours', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 3);
    openDatabase(path, dontCreate).close();
    openAsItIs(path).close();
    assert.deepEqual(soundIds(path), [1, 2, 3]);
  });

  it('lets several processes make and migrate one new file at once', async (t) => {
    const folder = tempFolder(t);
    for (let round = 0; round < 3; round++) {
      const path = join(folder, `${round}.db`);
      const migrate = () => run(['migrate', '--database', `sqlite:${path}`]);
      const outcomes = await Promise.all([migrate(), migrate(), migrate()]);
      for (const { status, stderr } of outcomes) assert.deepEqual([status, stderr], [0, '']);
      assert.deepEqual(soundIds(path), []);
    }
  });

  it('takes a name that means something to SQLite for the name of a file', async (t) => {
    const names = [':memory:', 'file:plants.db?mode=memory', 'a ? b # c % 41.db'];
    const folder = tempFolder(t);
    for (const name of names) {
      await runOk(['migrate', '--database', `sqlite:${name}`], { cwd: folder });
      assert.deepEqual(soundIds(join(folder, name)), []);
    }
    assert.deepEqual(readdirSync(folder).toSorted(), names.toSorted());
  });
});

describe('a database is refused', () => {
  it('where there is none, and none is to be made', (t) => {
    const { folder, path } = databaseFile(t);
    for (const open of [() => openDatabase(path, dontCreate), () => openAsItIs(path)]) {
      assert.throws(open, { name: 'Refusal', message: `There is no database at ${path}.` });
    }
    assert.deepEqual(readdirSync(folder), []);
  });

  it('in a folder that does not exist', (t) => {
    const path = join(tempFolder(t), 'nowhere', 'plants.db');
    assert.throws(() => openDatabase(path, create), {
      name: 'Refusal',
      kind: 'no-place',
      message: /there is no such folder\.$/,
    });
  });

  it('where it is empty: it has lost its content', (t) => {
    const { folder, path } = databaseFile(t);
    writeFileSync(path, '');
    writeFileSync(`${path}-wal`, 'what SQLite would delete');
    for (const options of [create, dontCreate]) {
      assertRefused(path, /is empty: .* Restore a backup, or delete the file to begin/, options);
    }
    assert.deepEqual(readdirSync(folder), ['plants.db', 'plants.db-wal']);
  });

  it('where there is none, but what belonged to one is left', (t) => {
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

  it('where the path is a folder', (t) => {
    assertRefused(tempFolder(t), /is not a file\. Name a database file with --database\.$/);
  });

  it('where the file is text', (t) => {
    const { path } = databaseFile(t);
    writeFileSync(path, 'Monstera, indoor\n'.repeat(100));
    assertRefused(path, /is not an SQLite database\. Choose another file with --database\.$/);
  });

  it('where another program wrote it', (t) => {
    const { folder, path } = databaseFile(t);
    foreignDatabase(path);
    assertRefused(path, /is an SQLite database of another program\. Choose another file/);
    assert.deepEqual(readdirSync(folder), ['plants.db']);
  });

  it('where a newer Plant Store wrote it, however it is opened', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 1);
    setVersion(path, newestVersion + 1);
    const words =
      /written by a newer Plant Store \(schema \d+, this version supports up to \d+\)\.$/;
    assert.throws(() => openDatabase(path, dontCreate), words);
    assert.throws(() => openAsItIs(path), words);
    assert.deepEqual(soundIds(path), [1]);
    setVersion(path, newestVersion);
    openDatabase(path, dontCreate).close();
  });

  it('where its first page is damaged', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 1);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0xaa, 100, 4096));
    assertRefused(path, /is damaged\. Restore a backup to another place, and keep this file\.$/);
  });

  it('where SQLite can corrupt a database that several processes use', () => {
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

// At once, because most of it is waiting.
describe('what others do not let us use is refused', { concurrency: true }, () => {
  // Root may write everywhere, so the command runs as somebody else there.
  const asSomebodyElse = process.getuid?.() === 0 ? { uid: 65_534 } : {};

  async function refusal(t: TestContext, prepare: (folder: string, path: string) => void) {
    const { status } = await run(['--version'], asSomebodyElse).catch(() => ({ status: null }));
    if (status !== 0) return t.skip('an unprivileged user cannot run the program where it lies');
    const folder = join(tempFolder(t), 'store');
    const path = join(folder, 'plants.db');
    mkdirSync(folder);
    prepare(folder, path);
    chmodSync(join(folder, '..'), 0o755);
    const outcome = await run(['migrate', '--database', `sqlite:${path}`], asSomebodyElse);
    chmodSync(folder, 0o700); // or it could not be removed
    assert.equal(outcome.status, 1, outcome.stderr);
    return outcome.stderr;
  }

  const bothNeeded =
    /^error: Cannot write to .* \(permission is denied\)\. SQLite needs to write both\. Choose another place/;

  it('a file that may not be written', async (t) => {
    const stderr = await refusal(t, (folder, path) => {
      openDatabase(path, create).close();
      chmodSync(path, 0o444);
      chmodSync(folder, 0o777);
    });
    if (stderr !== undefined) assert.match(stderr, bothNeeded);
  });

  it('a file whose folder may not be written', async (t) => {
    const stderr = await refusal(t, (folder, path) => {
      openDatabase(path, create).close();
      chmodSync(path, 0o666);
      chmodSync(folder, 0o555);
    });
    if (stderr !== undefined) assert.match(stderr, bothNeeded);
  });

  it('a new file in a folder that may not be written', async (t) => {
    const stderr = await refusal(t, (folder) => chmodSync(folder, 0o555));
    if (stderr !== undefined) {
      assert.match(
        stderr,
        /^error: Cannot make a database at .*: permission is denied\. Choose another/,
      );
    }
  });

  it('a file that may not be read', async (t) => {
    const stderr = await refusal(t, (folder, path) => {
      openDatabase(path, create).close();
      chmodSync(path, 0o000);
      chmodSync(folder, 0o777);
    });
    if (stderr !== undefined) assert.match(stderr, bothNeeded);
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
