/**
 * Plants that another program inserts, without the lock that every change takes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from 'pg';
import { binStart } from '../../src/log/change-log.ts';
import type { ChangeOptions } from '../../src/plants/plant-storage.ts';
import { Problem } from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { ownScene } from '../support/scene.ts';
import { it } from '../support/storages.ts';
import { until } from '../support/until.ts';

const insert = (store: number, id: number) =>
  `INSERT INTO plants (store, id, owner, tag, name) VALUES (${store}, ${id}, 1, '', 'foreign')`;

/** The id of the plant, or why there is none. */
async function outcomeOf(change: Promise<{ id: number } | undefined>): Promise<unknown> {
  try {
    return (await change)?.id;
  } catch (error) {
    return error instanceof Problem ? error.kind : error;
  }
}

/** What the log has of plants. */
async function logOf({ log }: Storage, store: string): Promise<string[]> {
  const { changes } = await log.list({ store, limit: 100 });
  const ofPlants = changes.filter(({ plant }) => plant !== undefined);
  return ofPlants.map(({ event, plant }) => `${event} ${plant}`);
}

it('an id that another program has used is taken, and the next id is above it', async (t) => {
  const { database, storage, store, caller } = await ownScene(t);
  const alice = await caller('alice');
  const create = (id?: number, options?: ChangeOptions) =>
    outcomeOf(storage.plants.create(alice, { name: 'a', ...(id && { id }) }, options));
  assert.equal(await create(), 1);
  await database.run(insert(alice.store, 2));
  for (let time = 0; time < 2; time++) assert.equal(await create(2, { key: 'key' }), 'id-taken');
  await database.run(insert(alice.store, 3));
  assert.deepEqual(await Promise.all([create(), create(3), create()]), [4, 'id-taken', 5]);
  assert.deepEqual(await logOf(storage, store), ['created 1', 'created 4', 'created 5']);
});

it('a plant of another program ends the deletion of an earlier one with its id', async (t) => {
  const { database, storage, caller } = await ownScene(t);
  const alice = await caller('alice');
  const { plants, log } = storage;
  await plants.create(alice, { name: 'earlier', id: 1 });
  await plants.delete(alice, 1);
  await database.run(insert(alice.store, 1));
  await plants.delete(alice, 1);
  const bin = await log.deleted(alice, { after: binStart, limit: 10 });
  assert.deepEqual(
    bin.plants.map(({ name }) => name),
    ['foreign'],
  );
  assert.equal((await plants.restore(alice, 1))?.name, 'foreign');
});

test('a group that meets plants of another program is decided again (PostgreSQL)', async (t) => {
  const { database, storage, store, caller } = await ownScene(t, 'PostgreSQL');
  const alice = await caller('alice');
  const { plants } = storage;
  await plants.create(alice, { name: 'a', id: 1 });
  await plants.delete(alice, 1);
  const other = new Client({ connectionString: database.url });
  await using ending = new AsyncDisposableStack();
  ending.defer(() => other.end());
  await other.connect();
  await other.query('SET search_path = plant_store; BEGIN');
  for (const id of [1, 2]) await other.query(insert(alice.store, id));
  const keyed = () => outcomeOf(plants.create(alice, { name: 'a', id: 2 }, { key: 'key' }));
  const restore = outcomeOf(plants.restore(alice, 1));
  const outcomes = [restore, keyed(), outcomeOf(plants.create(alice, { name: 'b' }))];
  const waiting = `SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  const isWaiting = async () => (await other.query(waiting)).rowCount === 1;
  await until('the group waits for the other program', isWaiting);
  await other.query('COMMIT');
  assert.deepEqual(await Promise.all(outcomes), ['id-taken', 'id-taken', 3]);
  assert.equal(await keyed(), 'id-taken');
  assert.deepEqual(await logOf(storage, store), ['created 1', 'deleted 1', 'created 3']);
});
