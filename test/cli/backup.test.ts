import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
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
import { run, runProcess, serve, start, type Service } from '../support/command.ts';
import { databaseFile, fill, soundIds, type DatabaseFile } from '../support/database.ts';
import { quotedExecutable, startOnTerminal } from '../support/on-terminal.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

describe('backup', { concurrency: 2 }, () => {
  it('contains every change acknowledged before it, while eight clients write', async (t) => {
    const { path, url } = databaseFile(t);
    const token = await fill(path, 20_000); // several steps of the copy
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
    assert.ok(copied.size >= 20_000 + before.length);
    assert.deepEqual(readdirSync(folder), ['copy.db'], 'it can be read without any other file');
  });

  it('shows its progress on a terminal only', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 100);
    const copy = join(tempFolder(t), 'copy.db');
    const { stderr } = await run(['backup', `${copy}.other`, '--database', url]);
    assert.equal(stderr, '');
    const terminal = startOnTerminal(t, `${quotedExecutable} backup ${copy} --database ${url}`);
    if (terminal === undefined) return;
    assert.equal(await terminal.ended, 0);
    const [, done, total] = /\[=+\] 100% \| (\d+) of (\d+) pages/.exec(terminal.output()) ?? [];
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

  it('exits with 1 if there is no database, and leaves no file', async (t) => {
    const { folder, path, url } = databaseFile(t);
    const { status, stderr } = await run(['backup', join(folder, 'copy.db'), '--database', url]);
    assert.equal(status, 1);
    const advice =
      'Run the command in the folder of the database, or set its path with --database.';
    assert.ok(stderr.endsWith(`error: There is no database at ${path}. ${advice}\n`), stderr);
    assert.deepEqual(readdirSync(folder), []);
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
    const database = databaseFile(t);
    await fill(database.path, 20_000); // a copy of few ends before the signal arrives
    const folder = tempFolder(t);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const interrupted = () => backUpUntil(signal, database, join(folder, 'copy.db'));
      let ended = await interrupted();
      // It gives up after 5 seconds, in which a busy machine may not get to the signal.
      for (let tries = 1; ended[0] === 1 && tries < 5; tries++) ended = await interrupted();
      assert.deepEqual(ended, [130, null]);
      assert.deepEqual(readdirSync(folder), []);
    }
    assert.equal(soundIds(database.path).length, 20_000);
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
    const { status } = await runProcess(['backup', copy, '--database', database.url]);
    assert.equal(status, 0);
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
