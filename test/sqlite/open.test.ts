/**
 * Which files can be opened as a database, and the message for each one that cannot.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { reasonOf } from '../../src/cli/errors.ts';
import { openDatabase, refuseUnsafeSqlite } from '../../src/sqlite/file/open.ts';
import { nowMs } from '../../src/sqlite/file/locks.ts';
import { migrations, readSchema } from '../../src/sqlite/file/migrate.ts';
import { encodeSchema } from '../../src/shared/migrations.ts';
import { Refusal } from '../../src/refusal.ts';
import { run, runHere, runOk } from '../support/command.ts';
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

function setVersion(path: string, version: number): void {
  using database = new DatabaseSync(path);
  const number = encodeSchema({ version, usableFrom: version });
  database.exec(`PRAGMA user_version = ${number}; PRAGMA journal_mode = DELETE`);
}

const openFile = new URL('../../src/sqlite/file/open.ts', import.meta.url);
/** A thread that opens each file at the same moment as all others. */
const opening = `
  const { workerData: { paths, arrived, threads, module } } = require('node:worker_threads');
  import(module).then(({ openDatabase }) => {
    for (const [at, path] of paths.entries()) {
      Atomics.add(arrived, at, 1);
      Atomics.notify(arrived, at);
      for (let count; (count = Atomics.load(arrived, at)) < threads;)
        Atomics.wait(arrived, at, count);
      try {
        openDatabase(path, { create: true }).close();
      } catch (error) {
        console.error(error);
        process.exitCode = 1;
      }
    }
  });`;

describe('opening a database', () => {
  it('creates a file that only its owner can read, with every umask', (t) => {
    const { folder, path } = databaseFile(t);
    const umask = process.umask(0);
    t.after(() => process.umask(umask));
    using database = openDatabase(path, create);
    assert.equal(readSchema(database).version, migrations.newest);
    database.exec("INSERT INTO stores (store, name) VALUES (1, 'main')"); // creates the WAL
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

  it('keeps the content of an existing database', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 3);
    openDatabase(path, dontCreate).close();
    openDatabase(path, dontMigrate).close();
    assert.deepEqual(soundIds(path), [1, 2, 3]);
  });

  it('lets several threads create and migrate the same new file at the same time', async (t) => {
    const paths = Array.from({ length: 50 }, () => databaseFile(t).path);
    const arrived = new Int32Array(new SharedArrayBuffer(4 * paths.length));
    const workerData = { paths, arrived, threads: 4, module: openFile.href };
    const threads = [1, 2, 3, 4].map(() => new Worker(opening, { eval: true, workerData }));
    const ended = threads.map(async (thread) => once(thread, 'exit'));
    assert.deepEqual(await Promise.all(ended), [[0], [0], [0], [0]]);
    for (const path of paths) assert.deepEqual(soundIds(path), []);
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
      assert.throws(open, { name: 'Refusal', message: /^There is no database at / });
    }
    assert.deepEqual(readdirSync(folder), []);
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

  it('if it is something else, or damaged', async (t) => {
    const newFile = () => databaseFile(t).path;
    const [text, foreign, damaged] = [newFile(), newFile(), newFile()];
    writeFileSync(text, 'Monstera, indoor\n'.repeat(100));
    const other = new DatabaseSync(foreign);
    other.exec('CREATE TABLE notes (text); PRAGMA user_version = 1');
    other.close();
    await fill(damaged, 1);
    writeFileSync(damaged, readFileSync(damaged).fill(0xaa, 100, 4096)); // its first page
    for (const [path, message] of [
      [text, /is not an SQLite database\. Choose another file with --database\.$/],
      [foreign, /is an SQLite database of another program\. Choose another file/],
      [damaged, /is damaged\. Keep this file, and restore a backup to another path\.$/],
    ] as const) {
      assertRefused(path, message);
      assert.deepEqual(readdirSync(dirname(path)), ['plants.db']);
    }
  });

  it('if a newer Plant Store wrote it, with and without migrating', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 1);
    setVersion(path, migrations.newest + 1);
    const message =
      /written by a newer Plant Store \(schema \d+, this version supports up to \d+\)\. Update Plant Store/;
    assert.throws(() => openDatabase(path, dontCreate), message);
    assert.throws(() => openDatabase(path, dontMigrate), message);
    assert.deepEqual(soundIds(path), [1]);
    setVersion(path, migrations.newest);
    openDatabase(path, dontCreate).close();
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

/** Every command that opens a database, with the address of one. */
const commands = (url: string, folder: string) => [
  ['serve', '--port', '0', '--database', url],
  ['migrate', '--database', url],
  ['backup', join(folder, 'copy.backup'), '--database', url],
  ['restore', join(folder, 'good.backup'), '--database', url],
  ['copy', '--from', url, '--to', `sqlite:${join(folder, 'other.db')}`],
  ['copy', '--from', `sqlite:${join(folder, 'good.backup')}`, '--to', url],
  ['token', 'list', '--database', url],
];

describe('a database with a second path is refused', () => {
  it('if it has hard links, by every command and path, and nothing is written', async (t) => {
    const { folder, path, url } = databaseFile(t);
    await fill(path, 3);
    await runOk(['backup', join(folder, 'good.backup'), '--database', url]);
    const elsewhere = tempFolder(t);
    const [other, link] = [join(elsewhere, 'other name.db'), join(elsewhere, 'link.db')];
    linkSync(path, other);
    symlinkSync(other, link);
    const before = [readdirSync(folder), readdirSync(elsewhere), readFileSync(path)];
    for (const one of [path, other, link]) {
      for (const command of commands(`sqlite:${one}`, folder)) {
        const { status, stderr } = await runHere(command);
        assert.equal(status, 1, command.join(' '));
        assert.match(stderr, /^error: \S+.* has 2 hard links\. .* Delete the other links/);
      }
    }
    assert.deepEqual([readdirSync(folder), readdirSync(elsewhere), readFileSync(path)], before);
    rmSync(other);
    openDatabase(path, dontCreate).close();

    linkSync(path, join(folder, 'beside.db'));
    assertRefused(path, /has 2 hard links, such as \S+beside\.db\./, dontCreate);
    rmSync(join(folder, 'beside.db'));
    writeFileSync(`${path}-wal`, '');
    linkSync(`${path}-wal`, other);
    assertRefused(path, /plants\.db-wal has 2 hard links/, dontCreate);
  });

  it('but not if a creation or a restore of it is in progress, or was killed', async (t) => {
    const { path } = databaseFile(t);
    await fill(path, 3);
    for (const suffix of ['.partial-1', '.before-restore-1']) {
      linkSync(path, path + suffix);
      openDatabase(path, dontCreate).close();
      assertRefused(path + suffix, /has \d hard links, such as \S+plants\.db\./, dontCreate);
    }
  });

  it('if it is mounted without its folder, also through a symbolic link', async (t) => {
    const folder = join(tempFolder(t), 'two words');
    mkdirSync(folder);
    const path = join(folder, 'plants.db');
    await fill(path, 3);
    const [mounted, link] = [join(tempFolder(t), 'a\\b \t.db'), join(folder, 'link.db')];
    symlinkSync(mounted, link);
    writeFileSync(mounted, '');
    const mounting = 'mount --bind "$FROM" "$TO" && exec "$@"';
    const under = ['unshare', '--mount', 'sh', '-c', mounting, 'sh'];
    const env = { FROM: path, TO: mounted };
    const isAllowed = spawnSync('unshare', [...under.slice(1), 'true'], {
      env: { ...process.env, ...env },
    });
    if (isAllowed.status !== 0) return t.skip('a file cannot be mounted here: it takes root');
    for (const one of [mounted, link]) {
      const { status, stderr } = await run(['migrate', '--database', `sqlite:${one}`], {
        env,
        under,
      });
      assert.equal(status, 1, stderr);
      assert.match(stderr, /\.db is mounted without its folder, .* Mount its folder instead\./);
    }
    assert.deepEqual(readdirSync(dirname(mounted)), [basename(mounted)]);

    const ofFolder = { env: { FROM: folder, TO: dirname(mounted) }, under };
    const url = `sqlite:${join(dirname(mounted), 'plants.db')}`;
    assert.equal((await run(['migrate', '--database', url], ofFolder)).status, 0);
  });
});

it('each wrong path gets a reason, and no command shows a stack', async (t) => {
  const { folder, path, url } = databaseFile(t);
  await fill(path, 1);
  writeFileSync(join(folder, 'text'), '');
  mkdirSync(join(folder, 'folder'));
  symlinkSync('circle', join(folder, 'circle'));
  symlinkSync('nowhere', join(folder, 'dangling'));
  await runOk(['backup', 'good.backup', '--database', url], { cwd: folder });
  const reasons: [path: string, database: RegExp, backup: RegExp, source: RegExp][] = [
    ['', /PATH is the path of a file/, /not blank/, /not blank/],
    ['folder', /is not a file/, /folder already exists/, /no backup at/],
    ['circle', /symbolic links lead back/, /circle already exists/, /symbolic links lead back/],
    ['text/x', /a part of the path is not/, /a part of the path is not/, /no backup at/],
    ['x'.repeat(300), /name is too long/, /name is too long/, /name is too long/],
    ['nowhere/x', /folder does not exist/, /folder does not exist/, /no backup at/],
    ['dangling', /^$/, /dangling already exists/, /^$/],
    ['plants.db', /^$/, /plants.db already exists/, /is the database that it would replace/],
  ];
  const restored: string[] = [];
  for (const [wrong, ofDatabase, ofBackup, ofSource] of reasons) {
    const database = `sqlite:${wrong}`;
    for (const [args, expected] of [
      [['restore', 'good.backup', '--database', database], ofDatabase],
      [['migrate', '--database', database], ofDatabase],
      [['copy', '--from', 'sqlite:good.backup', '--to', database], ofDatabase],
      [['backup', wrong, '--database', url], ofBackup],
      [['restore', wrong, '--database', url], ofSource],
    ] as const) {
      const { stdout, stderr } = await runHere(args, { cwd: folder });
      const isOk = expected.source === '^$';
      if (isOk) restored.push(stdout);
      else assert.match(stderr, expected, args.join(' '));
      assert.doesNotMatch(stderr, /^ +at /m);
    }
  }
  assert.match(restored[0] ?? '', /^Restored \S+ to \S+dangling\.$/m);
  assert.deepEqual(soundIds(join(folder, 'nowhere')), [1]);
});

it('each path without permission gets a reason', { skip: withoutUnprivileged }, async (t) => {
  const writeAccessNeeded =
    /^error: Cannot write to .* \(permission denied\)\. SQLite needs write access to both\. Fix the permissions, or choose another path/;
  const cannotBeCreated =
    /^error: .*plants\.db cannot be created: permission denied\. Choose another path/;
  const paths = [
    [0o444, 0o777, writeAccessNeeded],
    [0o000, 0o777, writeAccessNeeded],
    [0o666, 0o555, writeAccessNeeded],
    [undefined, 0o555, cannotBeCreated],
  ] as const;
  const refusals = paths.map(async ([ofFile, ofFolder, message]) => {
    const { folder, path, url } = databaseFile(t);
    if (ofFile !== undefined) {
      openDatabase(path, create).close();
      chmodSync(path, ofFile);
    }
    chmodSync(folder, ofFolder);
    const { status, stderr } = await run(['migrate', '--database', url], unprivileged);
    chmodSync(folder, 0o700); // so that it can be deleted
    assert.equal(status, 1);
    assert.match(stderr, message);
  });
  await Promise.all(refusals);
});
