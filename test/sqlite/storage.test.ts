import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it, type TestContext } from 'node:test';
import { plantFields } from '../../src/plant.ts';
import { listSql, plantSql } from '../../src/sqlite/plants.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { tokenSql } from '../../src/sqlite/tokens.ts';
import { storageContract } from '../storage.contract.ts';
import { tempFolder } from '../support/temp.ts';

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

storageContract({ name: 'SQLite', open, openAgain });

it('SQLite: every request is a range of an index: no scan of a table, no sort', async (t) => {
  await open(t);
  const database = new DatabaseSync(path);
  t.after(() => database.close());
  const lists = (['store', 'storeTag', 'owner', 'ownerTag'] as const).map((kind) =>
    listSql(kind, plantFields),
  );
  const { listAll: _all, listStore: _store, ...tokens } = tokenSql; // for people, not for requests
  const statements = [...lists, ...Object.values(plantSql), ...Object.values(tokens)];

  for (const sql of statements) {
    const plan = database
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => String(detail));
    const scans = plan.filter((step) => /^SCAN (?!\(subquery|CONSTANT ROW)/.test(step));
    assert.deepEqual(scans, [], `${sql}\n${plan.join('\n')}`);
    assert.ok(!plan.some((step) => step.includes('TEMP B-TREE')), `${sql}\n${plan.join('\n')}`);
  }
});

it('SQLite: a list reads the index that is made for it, to its bounds', async (t) => {
  await open(t);
  const database = new DatabaseSync(path);
  t.after(() => database.close());
  const expected = {
    store: 'SEARCH plants USING PRIMARY KEY (store=? AND id>? AND id<?)',
    storeTag: 'SEARCH plants USING INDEX plants_by_tag (store=? AND tag=? AND id>? AND id<?)',
    owner: 'SEARCH plants USING INDEX plants_by_owner (store=? AND owner=? AND id>? AND id<?)',
    ownerTag:
      'SEARCH plants USING INDEX plants_by_owner_tag (store=? AND owner=? AND tag=? AND id>? AND id<?)',
  } as const;
  for (const kind of ['store', 'storeTag', 'owner', 'ownerTag'] as const) {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${listSql(kind, ['name', 'tag'])}`).all();
    const searches = plan
      .map(({ detail }) => String(detail))
      .filter((one) => one.includes('plants'));
    // To the end of the page, the page itself, and the look beyond.
    assert.equal(searches.length, 3);
    for (const search of searches) {
      assert.equal(search.replace('COVERING ', ''), expected[kind]);
    }
    if (kind === 'owner') assert.ok(searches.every((one) => one.includes('COVERING')));
  }
});
