import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Caller } from '../../src/access/access.ts';
import { nowMs } from '../../src/sqlite/file/locks.ts';
import { lockTimeoutMs } from '../../src/sqlite/file/open.ts';
import { maxPendingWrites } from '../../src/problem.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import type { Batch, Write } from '../../src/sqlite/writer/messages.ts';
import { addToken } from '../support/app.ts';
import { listOf } from '../support/scene.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { identify } from '../support/tokens.ts';

const threadFile = new URL('../../src/sqlite/writer/thread.ts', import.meta.url);

async function open(t: TestContext) {
  const path = join(tempFolder(t), 'plants.db');
  const storage = new SqliteStorage(path, { create: true });
  t.after(() => storage[Symbol.asyncDispose]());
  const grant = await identify(storage, await addToken(storage, 'alice'));
  return { path, storage, alice: grant?.caller ?? assert.fail() };
}

/** Takes the write lock, as another process would. Call the result to release it. */
function holdLock(path: string): () => void {
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  return () => {
    other.exec('ROLLBACK');
    other.close();
  };
}

it('writes that arrive during a commit share the next one', async (t) => {
  const { path, storage, alice } = await open(t);
  const walFrames = () =>
    Number(new DatabaseSync(path).prepare('PRAGMA wal_checkpoint').get()?.['log']);
  await storage.plants.create(alice, { name: 'first' });
  const framesBefore = walFrames();
  const release = holdLock(path);
  const writes = Array.from({ length: 200 }, () => storage.plants.create(alice, { name: 'a' }));
  release();
  await Promise.all(writes);
  // A commit for each write would write at least the four pages that a plant changes.
  assert.ok(walFrames() - framesBefore < 200 * 2);
});

it('refuses writes beyond its limit at once, and completes those that it accepted', async (t) => {
  const { path, storage, alice } = await open(t);
  const release = holdLock(path);
  const outcomes: string[] = [];
  const writes = Array.from({ length: maxPendingWrites + 10 }, async () => {
    outcomes.push(await outcomeOf(storage, alice, 'done'));
  });
  await Promise.all(writes.slice(-10));
  assert.deepEqual([outcomes.length, ...new Set(outcomes)], [10, 'overloaded']);
  release();
  await Promise.all(writes);
  assert.equal(outcomes.filter((outcome) => outcome === 'done').length, maxPendingWrites);
  assert.equal((await namesIn(storage, alice)).length, maxPendingWrites);
});

it('completes pending writes before it closes', async (t) => {
  const { path, storage, alice } = await open(t);
  const writes = Array.from({ length: 50 }, () => storage.plants.create(alice, { name: 'a' }));
  await storage[Symbol.asyncDispose]();
  assert.equal((await Promise.all(writes)).length, 50);
  using database = new DatabaseSync(path);
  assert.deepEqual({ ...database.prepare('SELECT count(*) AS c FROM plants').get() }, { c: 50 });
});

/** Creates a plant. Resolves to its name, or to the kind of the Problem. */
function outcomeOf(storage: SqliteStorage, caller: Caller, name: string): Promise<string> {
  return storage.plants.create(caller, { name }).then(
    (plant) => plant.name,
    (error: { kind: string }) => error.kind,
  );
}

async function namesIn(storage: SqliteStorage, caller: Caller): Promise<string[]> {
  return (await listOf(storage, caller, { limit: 100_000 })).map(({ name }) => name);
}

/** Collects all threads that this process starts from now on. */
function startedThreads(t: TestContext): Worker[] {
  const threads: Worker[] = [];
  const add = (thread: Worker) => threads.push(thread);
  process.on('worker', add);
  t.after(() => process.off('worker', add));
  return threads;
}

it('replaces a writer thread that dies, and reports unknown outcomes as unknown', async (t) => {
  const threads = startedThreads(t);
  const { path, storage, alice } = await open(t);
  const [thread] = threads;
  assert.ok(thread);
  const create = (name: string) => outcomeOf(storage, alice, name);
  assert.equal(await create('before'), 'before');

  const release = holdLock(path);
  const activeMs = () => thread.performance.eventLoopUtilization().active;
  const activeMsBefore = activeMs();
  const inFlight = create('in flight');
  await until('the thread waits for the lock', () => activeMs() > activeMsBefore + 20);
  const behind = create('behind');
  await setImmediate(); // it is sent to the thread too
  await thread.terminate();
  assert.deepEqual([await inFlight, await behind], ['outcome-unknown', 'outcome-unknown']);
  release();
  assert.equal(await create('after'), 'after');
  assert.equal(threads.length, 2);
  assert.deepEqual(await namesIn(storage, alice), ['before', 'after']);
});

it('reports the outcome of each write truthfully, whenever its thread dies', async (t) => {
  const threads = startedThreads(t);
  const { storage, alice } = await open(t);
  const outcomes = new Map<string, string>();
  for (let round = 0; round < 8; round++) {
    const writes = Array.from({ length: 1_000 }, async (_, at) => {
      const name = `${round}.${at}`;
      const outcome = await outcomeOf(storage, alice, name);
      outcomes.set(name, outcome === name ? 'done' : outcome);
    });
    await writes[round * 100]; // so that the thread dies at a different point each time
    await threads.at(-1)?.terminate();
    await Promise.all(writes);
  }
  const stored = new Set(await namesIn(storage, alice));
  for (const [name, outcome] of outcomes) {
    if (outcome === 'done') assert.ok(stored.has(name), name);
  }
  assert.deepEqual(new Set(outcomes.values()), new Set(['done', 'outcome-unknown']));
});

it('a write that reaches the thread late is committed if the database is not locked', async (t) => {
  const { path } = await open(t);
  const thread = new Worker(threadFile, { workerData: { path } });
  const write: Write = ['add-store', 'main'];
  const batch: Batch = { sentMs: nowMs() - 2 * lockTimeoutMs, writes: [write] };
  thread.postMessage(batch);
  const [outcomes] = await once(thread, 'message');
  thread.postMessage('close');
  await once(thread, 'exit');
  assert.deepEqual(outcomes, [[undefined]]);
});
