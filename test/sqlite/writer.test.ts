import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it, type TestContext } from 'node:test';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { underWayMax } from '../../src/sqlite/writer.ts';
import { hashToken } from '../../src/token.ts';
import { addToken } from '../support/app.ts';
import { tempFolder } from '../support/temp.ts';

async function open(t: TestContext) {
  const path = join(tempFolder(t), 'plants.db');
  const storage = new SqliteStorage(path, { create: true });
  t.after(() => storage[Symbol.asyncDispose]());
  const grant = await storage.findGrant(hashToken(await addToken(storage, 'alice')));
  assert.ok(grant);
  return { path, storage, alice: grant.caller };
}

/** Holds the write lock, as another process would, until it is called. */
function holdLock(path: string): () => void {
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  return () => {
    other.exec('ROLLBACK');
    other.close();
  };
}

it('shares a commit among the writes that came while another was under way', async (t) => {
  const { path, storage, alice } = await open(t);
  const walBytes = () =>
    Number(new DatabaseSync(path).prepare('PRAGMA wal_checkpoint').get()?.['log']);
  await storage.createPlant(alice, { name: 'first' });
  const framesBefore = walBytes();
  const release = holdLock(path);
  const writes = Array.from({ length: 200 }, () => storage.createPlant(alice, { name: 'a' }));
  release();
  await Promise.all(writes);
  // Each commit of its own would write at least the four pages that a plant is in.
  assert.ok(walBytes() - framesBefore < 200 * 2);
});

it('refuses what is beyond its bound at once, and does all that it took', async (t) => {
  const { path, storage, alice } = await open(t);
  const release = holdLock(path);
  const outcomes: string[] = [];
  const writes = Array.from({ length: underWayMax + 10 }, async (_, at) => {
    const outcome = await storage.createPlant(alice, { name: `n${at}` }).then(
      () => 'done',
      (error: { kind: string }) => error.kind,
    );
    outcomes.push(outcome);
  });
  const refused = 10;
  await Promise.all(writes.slice(-refused));
  assert.deepEqual(
    outcomes,
    Array.from({ length: refused }, () => 'overloaded'),
  );
  release();
  await Promise.all(writes);
  assert.equal(outcomes.filter((outcome) => outcome === 'done').length, underWayMax);
  const { json } = await storage.listPlants(alice, { after: 0, limit: 10_000, fields: ['id'] });
  assert.equal(json.split(',').length, underWayMax);
});

it('does what it took before it is closed', async (t) => {
  const { path, storage, alice } = await open(t);
  const writes = Array.from({ length: 50 }, () => storage.createPlant(alice, { name: 'a' }));
  await storage[Symbol.asyncDispose]();
  assert.equal((await Promise.all(writes)).length, 50);
  const database = new DatabaseSync(path);
  assert.deepEqual({ ...database.prepare('SELECT count(*) AS c FROM plants').get() }, { c: 50 });
  database.close();
});
