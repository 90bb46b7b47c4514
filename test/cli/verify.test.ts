import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { scopes } from '../../src/access/access.ts';
import { removeUser } from '../../src/access/remove-user.ts';
import { fileOf, isFile } from '../../src/cli/database.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken } from '../support/app.ts';
import { runHere, runOk } from '../support/command.ts';
import { findUser } from '../support/scene.ts';
import {
  emptyDatabase,
  it,
  storageNames,
  testDatabase,
  type TestDatabase,
} from '../support/storages.ts';
import { tempFolder } from '../support/temp.ts';
import { identify, idOf } from '../support/tokens.ts';

/** What is done to a store by hand, and what has to be found there. `$s` is its number. */
const damages: readonly (readonly [title: string, sql: string, fault: RegExp])[] = [
  [
    'the name of a plant',
    `UPDATE plants SET name = 'Rose' WHERE store = $s AND id = 1`,
    /^plant 1, position \d+: /,
  ],
  ['its tag', `UPDATE plants SET tag = 'bed 9' WHERE store = $s AND id = 1`, /^plant 1, position/],
  ['its owner', `UPDATE plants SET owner = 2 WHERE store = $s AND id = 1`, /^plant 1, position/],
  ['its id', `UPDATE plants SET id = 77 WHERE store = $s AND id = 1`, /^plant 77, position/],
  [
    'its position',
    `UPDATE plants SET position = 0 WHERE store = $s AND id = 1`,
    /^position \d+: the plant that/,
  ],
  [
    'an owner who is missing',
    `UPDATE plants SET owner = 99 WHERE store = $s AND id = 1`,
    /^plants 99: the user is missing/,
  ],
  [
    'two plants',
    `UPDATE plants SET id = 77 WHERE store = $s AND id = 1;
    UPDATE plants SET id = 1 WHERE store = $s AND id = 4;
    UPDATE plants SET id = 4 WHERE store = $s AND id = 77`,
    /^plant 4, position/,
  ],
  [
    'a plant that is deleted',
    `DELETE FROM plants WHERE store = $s AND id = 1`,
    /^position \d+: the plant that/,
  ],
  [
    'a plant that is added',
    `INSERT INTO plants (store, id, owner, tag, name, position)
    SELECT store, 50, owner, tag, name, position FROM plants WHERE store = $s AND id = 1`,
    /^plant 50, position/,
  ],
  [
    'a change that is removed',
    `DELETE FROM changes WHERE store = $s AND plant = 1 AND event = 0`,
    /^position \d+: the log has no such/,
  ],
  [
    'the last change that is removed',
    `DELETE FROM changes WHERE store = $s AND position = (
    SELECT position FROM stores WHERE store = $s)`,
    /^position \d+: the log does not end here/,
  ],
  [
    'the texts of a change',
    `UPDATE changes SET name = 'Rose' WHERE store = $s AND plant = 1 AND event = 1`,
    /^plant 1, position \d+: it has not found/,
  ],
  [
    'its owner',
    `UPDATE changes SET owner = 2 WHERE store = $s AND plant = 1 AND event = 1`,
    /^plant 1, position \d+: it has not found/,
  ],
  [
    'its plant',
    `UPDATE changes SET plant = 4 WHERE store = $s AND plant = 1 AND event = 1`,
    /^plant 4, position \d+: it has not found/,
  ],
  [
    'its place',
    `UPDATE changes SET previous = previous - 1 WHERE store = $s AND plant = 1 AND event = 1`,
    /^plant 1, position \d+: it has not found/,
  ],
  [
    'its event',
    `UPDATE changes SET event = 2 WHERE store = $s AND plant = 1 AND event = 1`,
    /^plant 1, position/,
  ],
  [
    'its event, to none',
    `UPDATE changes SET event = 99 WHERE store = $s AND plant = 1 AND event = 1`,
    /^plant 1, position \d+: the event/,
  ],
  [
    'the last id',
    `UPDATE stores SET last_id = 3 WHERE store = $s`,
    /^plant \d+, position \d+: the last id/,
  ],
  ['the last user', `UPDATE stores SET last_user = 1 WHERE store = $s`, /^users 2: the last user/],
  [
    'the position, higher',
    `UPDATE stores SET position = position + 1 WHERE store = $s`,
    /^position \d+: the log does not end here/,
  ],
  [
    'the position, lower',
    `UPDATE stores SET position = 10 WHERE store = $s`,
    /^position 10: the log does not end here/,
  ],
  ['a share that is deleted', `DELETE FROM shares WHERE store = $s`, /^shares 1 bob: missing/],
  ['its access', `UPDATE shares SET access = 'read' WHERE store = $s`, /^shares 1 bob: differs/],
  [
    'a share that had ended',
    `INSERT INTO shares (store, owner, user_name, access, since) VALUES ($s, 1, 'dora', 'read', 0)`,
    /^shares 1 dora: differs/,
  ],
  ['a role', `UPDATE users SET role = 'manager' WHERE store = $s AND id = 2`, /^users 2: differs/],
  [
    'a user who was removed',
    `UPDATE users SET role = 'member' WHERE store = $s AND name = 'carol'`,
    /^users \d: differs/,
  ],
  ['a user who is deleted', `DELETE FROM users WHERE store = $s AND id = 2`, /^users 2: missing/],
  [
    'a token that was revoked',
    `UPDATE tokens SET revoked_at = NULL WHERE store = $s AND user_id = 1`,
    /^tokens \w+-\w+: differs/,
  ],
  [
    'the scopes of a token',
    `UPDATE tokens SET scopes = 'users:write' WHERE store = $s AND user_id = 2`,
    /^tokens \w+-\w+: differs/,
  ],
  [
    'the user of a token',
    `UPDATE tokens SET user_id = 4 WHERE store = $s AND user_id = 2`,
    /^tokens \w+-\w+: differs/,
  ],
  [
    'a token that is added',
    `INSERT INTO tokens (store, hash, user_id, scopes, label, created_at)
    SELECT store, $hash, 1, scopes, '', created_at FROM tokens WHERE store = $s AND user_id = 2`,
    /^tokens \w+-\w+: not in the log/,
  ],
  [
    'a share that is added',
    `INSERT INTO shares (store, owner, user_name, access, since) VALUES ($s, 2, 'alice', 'write', 0)`,
    /^shares 2 alice: not in the log/,
  ],
  [
    'a deletion that could be restored',
    `UPDATE changes SET is_restorable = 0 WHERE store = $s AND plant = 2`,
    /^plant 2: its deletion/,
  ],
  [
    'one whose id was used again',
    `UPDATE changes SET is_restorable = 1 WHERE store = $s AND plant = 6 AND event = 2`,
    /^plant 6, position \d+: an earlier deletion/,
  ],
];

/** Users with plants, shares and tokens, of which each kind of change has happened. */
async function fillStore(storage: Storage, store: string): Promise<number> {
  const callerOf = async (name: string, options = {}) => {
    const grant = await identify(
      storage,
      await addToken(storage, name, { store, scopes, ...options }),
    );
    assert.ok(grant);
    return grant.caller;
  };
  const alice = await callerOf('alice');
  const bob = await callerOf('bob');
  const carol = await callerOf('carol');
  await callerOf('maria', { role: 'manager' });
  await callerOf('maria', { role: 'member' });
  const { plants, shares, identity } = storage;
  const name = 'Monstera é 𝒳';
  for (const id of [1, 2, 3, 6]) await plants.create(alice, { id, name }, { key: `key ${id}` });
  await plants.create(bob, { id: 4, name });
  await plants.create(carol, { id: 5, name });
  await plants.update(alice, 1, { tag: 'bed 1' });
  for (const id of [2, 3, 6]) await plants.delete(alice, id);
  await plants.restore(alice, 3);
  await plants.create(bob, { id: 6, name: 'Ficus' });
  for (const access of ['read', 'write'] as const) {
    await shares.set(alice.store, { owner: 'alice', user: 'bob', access }, 0);
  }
  await shares.set(alice.store, { owner: 'alice', user: 'dora', access: 'read' }, 0);
  await shares.end(alice.store, [{ owner: 'alice', user: 'dora' }]);
  const revoked = await addToken(storage, 'alice', { store });
  await identity.revokeToken(idOf(revoked), 7);
  await removeUser(storage, carol, async () => findUser(storage, store, 'bob'));
  return alice.store;
}

async function verify(url: string, ...args: string[]) {
  const { status, stdout } = await runHere(['verify', '--json', '--database', url, ...args]);
  const { sha256, faults } = JSON.parse(stdout) as { sha256: string; faults: string[] };
  return { status, sha256, faults };
}

/** Runs a statement that foreign keys would refuse. */
async function runByHand(target: TestDatabase, sql: string): Promise<void> {
  if (!isFile(target.url)) return target.run(sql);
  using database = new DatabaseSync(fileOf(target.url), { enableForeignKeyConstraints: false });
  database.exec(sql);
}

it('verify finds each damage that is done by hand, and nothing else', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  await fillStore(storage, 'healthy');
  const stores = await Promise.all(damages.map((_, at) => fillStore(storage, `damage ${at}`)));
  const before = await verify(database.url);
  assert.deepEqual([before.status, before.faults], [0, []]);
  for (const [at, [, sql]] of damages.entries()) {
    const hash = isFile(database.url) ? 'randomblob(32)' : 'sha256(random()::text::bytea)';
    await runByHand(database, sql.replaceAll('$s', String(stores[at])).replace('$hash', hash));
  }
  const { status, sha256, faults } = await verify(database.url);
  assert.equal(status, 1);
  assert.notEqual(sha256, before.sha256);
  for (const [at, [title, , fault]] of damages.entries()) {
    const prefix = `store damage ${at}, `;
    const found = faults.filter((one) => one.startsWith(prefix));
    const texts = found.map((one) => one.slice(prefix.length));
    assert.ok(
      texts.some((text) => fault.test(text)),
      `${title}: ${texts.join('; ')}`,
    );
  }
  assert.deepEqual(
    faults.filter((fault) => !fault.startsWith('store damage')),
    [],
  );
});

it('verify finds nothing where the log has no checksums, has lost its begin, or other programs write', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  const store = await fillStore(storage, 'main');
  await database.run(`
    UPDATE changes SET left_crc = NULL WHERE plant = 1;
    UPDATE changes SET at = 0 WHERE position < 14;
    INSERT INTO plants (store, id, owner, tag, name) VALUES (${store}, 70, 1, '', 'Foreign'), (${store}, 71, 1, '', 'Foreign')`);
  await storage.log.removeOld(1, 0);
  const grant = await identify(storage, await addToken(storage, 'maria', { role: 'manager' }));
  assert.ok(grant);
  await storage.plants.delete(grant.caller, 70);
  assert.deepEqual((await verify(database.url)).faults, []);

  await using withoutLog = await database.open({ keepChangesMs: 0 });
  await withoutLog.plants.create(grant.caller, { name: 'unknown to the log' });
  assert.match(String((await verify(database.url)).faults), /the log does not end here/);
  assert.deepEqual((await verify(database.url, '--keep-changes', '0')).faults, []);
});

it('the digest of a database is that of its copies and of its restored backup', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  await fillStore(storage, 'main');
  const { sha256 } = await verify(database.url);
  const printed = await runOk(['verify', '--database', database.url]);
  assert.equal(printed, `ok\nChanges: 31, plants: 5\nSHA-256: ${sha256}`);
  for (const engine of storageNames) {
    const { url } = await emptyDatabase(t, engine);
    const copied = await runOk(['copy', '--from', database.url, '--to', url]);
    assert.ok(copied.endsWith(`SHA-256 of both: ${sha256}`), copied);
    assert.deepEqual(await verify(url), { status: 0, sha256, faults: [] });
    if (!isFile(url)) continue;
    const file = join(tempFolder(t), 'plants.backup');
    const restored = `sqlite:${join(tempFolder(t), 'restored.db')}`;
    await runOk(['backup', file, '--database', url]);
    await runOk(['restore', file, '--database', restored]);
    assert.deepEqual(await verify(restored), { status: 0, sha256, faults: [] });
  }
  await addToken(storage, 'zoe');
  assert.notEqual((await verify(database.url)).sha256, sha256);
});

it('verify leaves a database and a backup as they are, and refuses an older one', async (t) => {
  const database = await testDatabase(t);
  const { url } = database;
  await (await database.open())[Symbol.asyncDispose]();
  if (isFile(url)) {
    const folder = tempFolder(t);
    const file = join(folder, 'plants.backup');
    await runOk(['backup', file, '--database', url]);
    const before = readFileSync(file);
    assert.equal((await verify(`sqlite:${file}`)).status, 0);
    assert.deepEqual(readFileSync(file), before);
    assert.deepEqual(readdirSync(folder), ['plants.backup']);
  }
  const older = isFile(url) ? 'PRAGMA user_version = 1001' : 'UPDATE migrations SET version = 1001';
  await database.run(`ALTER TABLE changes DROP COLUMN left_crc; ${older}`);
  for (let attempt = 1; attempt <= 2; attempt++) {
    const { status, stderr } = await runHere(['verify', '--database', url]);
    assert.deepEqual([status, /has schema 1 of an older/.test(stderr)], [1, true], stderr);
  }
});
