import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { call } from '../support/app.ts';
import { TemporaryFile } from '../../src/sqlite/file/files.ts';
import { run, runOk, serve, start, type Service } from '../support/command.ts';
import { databaseFile, fill, soundIds, type DatabaseFile } from '../support/database.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** Several steps of the copy, which take longer than a signal. */
const plants = 20_000;

describe('backup', { concurrency: 2 }, () => {
  const large = shared(async (t) => {
    const database = databaseFile(t);
    return { ...database, token: await fill(database.path, plants) };
  });

  it('contains every change acknowledged before it, while eight clients write', async (t) => {
    const { path, url } = databaseFile(t);
    copyFileSync(large().path, path);
    const { token } = large();
    const service = await serve(t, ['--database', url]);
    const acknowledged: number[] = [];
    const stopped = new AbortController();
    const writing = Array.from({ length: 8 }, () =>
      write(service, token, acknowledged, stopped.signal),
    );
    await until('all clients write', () => acknowledged.length >= 50);

    const before = [...acknowledged];
    const folder = tempFolder(t);
    const copy = join(folder, 'copy.db');
    const { status, stdout, stderr } = await run(['backup', copy, '--database', url]);
    const during = acknowledged.length - before.length;
    stopped.abort();
    await Promise.all(writing);

    assert.equal(status, 0, stderr);
    assert.equal(stdout, `Backed up ${path} to ${copy} and verified the copy.\n`);
    assert.ok(during > 0, 'others could write meanwhile');
    assert.deepEqual(readdirSync(folder), ['copy.db']);
    assert.equal(statSync(copy).mode & 0o777, 0o600);
    const copied = new Set(soundIds(copy));
    const lost = before.filter((id) => !copied.has(id));
    assert.deepEqual(lost, []);
    assert.ok(copied.size >= plants + before.length);
    assert.deepEqual(readdirSync(folder), ['copy.db'], 'it can be read without any other file');
  });

  it('shows its progress on a terminal only', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 100);
    const copy = join(tempFolder(t), 'copy.db');
    const backup = ['backup', copy, '--database', url];
    const { stderr } = await run(backup, { isTerminal: true });
    const [, done, total] = /\[=+\] 100% \| (\d+) of (\d+) pages/.exec(stderr) ?? [];
    using database = new DatabaseSync(copy);
    const pages = database.prepare('PRAGMA page_count').get()?.['page_count'];
    assert.deepEqual([Number(done), Number(total)], [pages, pages]);
  });

  it('never overwrites a file', async (t) => {
    const { folder, path, url } = databaseFile(t);
    await fill(path, 1);
    const file = join(folder, 'notes.txt');
    writeFileSync(file, 'of value');
    mkdirSync(join(folder, 'folder'));
    const before = readFileSync(path);
    for (const target of [file, join(folder, 'folder'), path]) {
      const { status, stdout, stderr } = await run(['backup', target, '--database', url]);
      assert.deepEqual([status, stdout], [1, '']);
      const message = `error: ${target} already exists, and a backup never overwrites a file. Choose another name.`;
      assert.ok(stderr.endsWith(`${message}\n`), stderr);
    }
    assert.equal(readFileSync(file, 'utf8'), 'of value');
    assert.deepEqual(readFileSync(path), before);
    assert.deepEqual(readdirSync(folder).toSorted(), ['folder', 'notes.txt', 'plants.db']);
  });

  it('exits with 1 and reports the damage if the database is damaged', async (t) => {
    const { folder, path, url } = databaseFile(t);
    await fill(path, 2_000);
    const bytes = readFileSync(path);
    bytes.fill(0xaa, 40 * 4096, 60 * 4096);
    writeFileSync(path, bytes);
    const { status, stderr } = await run(['backup', join(folder, 'copy.db'), '--database', url]);
    assert.equal(status, 1);
    assert.match(stderr, /^error: .*plants\.db is damaged: .*$/m);
    assert.ok(!existsSync(join(folder, 'copy.db')));
    assert.ok(!readdirSync(folder).some((file) => file.includes('partial')));
  });

  it('refuses a database with a fault, of this schema or an older one', async (t) => {
    const { folder, path, url } = databaseFile(t);
    await runOk(['token', 'create', 'alice', '--database', url]);
    const copy = join(folder, 'copy.db');
    const backup = ['backup', copy, '--database', url];
    using database = new DatabaseSync(path);
    database.exec('UPDATE stores SET position = position + 1');
    const older = 'ALTER TABLE changes DROP COLUMN left_crc; PRAGMA user_version = 1001';
    for (const schema of ['', older]) {
      database.exec(schema);
      const { status, stderr } = await run(backup);
      const fault = 'store main, position 3: the log has no such change';
      assert.deepEqual(
        [status, stderr],
        [
          1,
          `error: The copy has a fault: ${fault}. Until it is mended, there are no backups: run "npx plant-store verify" with the same --database, and read docs/how-to/back-up.md.\n`,
        ],
      );
      assert.ok(!existsSync(copy));
    }
    await runOk([...backup, '--keep-changes', '0']); // so the service has made changes without a log
  });

  async function backUpUntil(signal: NodeJS.Signals, { path, url }: DatabaseFile, copy: string) {
    // Locked out until the signal is on its way, it cannot have come to its end by then.
    using holder = new DatabaseSync(path);
    holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    const child = start(['backup', copy, '--database', url]);
    const closed = once(child, 'close');
    child.stdout.resume();
    child.stderr.resume();
    const hasBegun = () => readdirSync(dirname(copy)).some((name) => /-[\da-f]{12}$/.test(name));
    await Promise.race([until('the backup has begun', hasBegun), closed]);
    child.kill(signal);
    holder.close();
    return closed;
  }

  it('leaves no file if a signal terminates it', async (t) => {
    const folder = tempFolder(t);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const interrupted = () => backUpUntil(signal, large(), join(folder, 'copy.db'));
      let ended = await interrupted();
      // It gives up after 5 seconds, in which a busy machine may not get to the signal.
      for (let tries = 1; ended[0] === 1 && tries < 5; tries++) ended = await interrupted();
      assert.deepEqual(ended, [130, null]);
      assert.deepEqual(readdirSync(folder), []);
    }
    assert.equal(soundIds(large().path).length, plants);
  });

  it('removes what a killed one left in the folder, but not what another one is writing', async (t) => {
    const database = databaseFile(t);
    await fill(database.path, 1);
    const folder = tempFolder(t);
    await backUpUntil('SIGKILL', database, join(folder, 'first.backup'));
    const left = readdirSync(folder);
    assert.equal(left.length, 2);
    assert.ok(!left.some((name) => name.endsWith('.backup')), 'no script takes it for a backup');
    const link = `link.partial-${randomUUID()}-lock`;
    writeFileSync(join(folder, 'elsewhere'), '');
    symlinkSync(join(folder, 'elsewhere'), join(folder, link));
    using other = new TemporaryFile(join(folder, 'second.backup'));
    const copy = join(folder, 'third.backup');
    await runOk(['backup', copy, '--database', database.url]);
    const inUse = basename(other.path);
    const kept = ['elsewhere', link, inUse, `${inUse}-lock`, 'third.backup'];
    assert.deepEqual(readdirSync(folder).toSorted(), kept);
  });
});

/** Creates plants until it is stopped, and records each acknowledged one. */
async function write(
  { address }: Service,
  token: string,
  acknowledged: number[],
  stopped: AbortSignal,
): Promise<void> {
  while (!stopped.aborted) {
    const json = { name: 'Monstera' };
    const answer = await call(`${address}/plants?fields=id`, 'POST', { token, json });
    assert.equal(answer.status, 201, answer.text);
    acknowledged.push(JSON.parse(answer.text).id);
  }
}
