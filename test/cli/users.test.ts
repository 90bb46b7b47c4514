import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Storage } from '../../src/storage.ts';
import { makeToken } from '../../src/access/token.ts';
import { addToken, startApp, type TokenOptions } from '../support/app.ts';
import { run, runOk } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { itOnce, testDatabase } from '../support/storages.ts';
import { tempFolder } from '../support/temp.ts';
import { idOf } from '../support/tokens.ts';
import { firstUserWith, grantOf, plantsOf } from './users.ts';

/** Adds a user with some plants. Returns a token. */
async function userWith(
  storage: Storage,
  user: string,
  plants: number,
  options?: TokenOptions,
): Promise<string> {
  const token = await addToken(storage, user, options);
  const { caller } = await grantOf(storage, token);
  const names = Array.from({ length: plants }, (_, at) => `${user} ${at}`);
  await Promise.all(names.map((name) => storage.plants.create(caller, { name })));
  return token;
}

describe('user remove', { concurrency: 2 }, () => {
  itOnce('ends the tokens and shares of a user, and moves the plants', async (t) => {
    const app = await startApp(t);
    const { storage, database } = app;
    const alice = await firstUserWith(storage, database, 1_201);
    const bob = await userWith(storage, 'bob', 1);
    const carol = await app.token('carol');
    const { store } = (await grantOf(storage, alice)).caller;
    await storage.shares.set(store, { owner: 'alice', user: 'carol', access: 'read' }, 1);
    const list = (token: string) => app.call('GET', '/plants?limit=10', { token });
    for (const token of [alice, bob, carol]) assert.equal((await list(token)).status, 200);

    const remove = ['user', 'remove', 'alice', '--yes', '--database', database.url];
    const refused = await run(remove);
    assert.deepEqual([refused.status, refused.stdout], [1, '']);
    assert.equal(
      refused.stderr,
      'error: This user owns plants. Give them to another user of the store with --plants-to USER.\n',
    );
    assert.equal((await list(alice)).status, 200);
    const printed = await runOk([...remove, '--plants-to', 'bob']);
    assert.equal(printed, 'Removed user alice from store main. Moved 1201 plants to bob.');
    assert.equal((await list(alice)).status, 401);
    assert.deepEqual((await list(carol)).json, []);
    const { json } = await list(bob);
    assert.deepEqual((json as object[])[0], { name: 'alice 0', tag: '' }); // ten plants
    assert.equal(await plantsOf(storage, bob), 1_202);
    const users = await runOk(['user', 'list', '--database', database.url]);
    assert.doesNotMatch(users, /alice/);

    const again = await runOk([...remove, '--json', '--plants-to', 'bob']);
    const value = { store: 'main', user: 'alice', plantsTo: 'bob', movedPlants: 0 };
    assert.deepEqual(JSON.parse(again), value);
    const created = await run(['token', 'create', 'alice', '--database', database.url]);
    assert.match(created.stderr, /for new user alice in store main/);
    assert.deepEqual((await list(created.stdout.trim())).json, []);
  });

  itOnce('refuses an heir who is in another store, or removed', async (t) => {
    const database = await testDatabase(t);
    const { url } = database;
    await using storage = await database.open();
    const alice = await userWith(storage, 'alice', 1);
    await addToken(storage, 'carol', { store: 'elsewhere' });
    await addToken(storage, 'gone');
    await runOk(['user', 'remove', 'gone', '--yes', '--database', url]);
    for (const heir of ['carol', 'gone']) {
      const args = ['alice', '--plants-to', heir, '--database', url];
      const message = `Store main has no user ${heir}. List all users with "npx plant-store user list".`;
      const expected = { status: 1, stdout: '', stderr: `error: ${message}\n` };
      assert.deepEqual(await run(['user', 'remove', ...args]), expected);
    }
    assert.equal((await grantOf(storage, alice)).revokedAtMs, undefined);
    assert.equal(await plantsOf(storage, alice), 1);
  });

  itOnce('lets the writes of others run between its batches', async (t) => {
    const app = await startApp(t);
    const { storage, database } = app;
    await firstUserWith(storage, database, 1_600);
    const bob = await app.token('bob');
    const args = ['user', 'remove', 'alice', '--yes', '--plants-to', 'bob'];
    args.push('--database', database.url);
    const ended = new AbortController();
    const removing = runOk(args).finally(() => ended.abort());
    let created = 0;
    for (; !ended.signal.aborted; created++) {
      const json = { name: 'bob' };
      assert.equal((await app.call('POST', '/plants', { token: bob, json })).status, 201);
    }
    await removing;
    assert.ok(created > 3, `${created} plants were created meanwhile`);
    assert.equal(await plantsOf(storage, bob), 1_600 + created);
  });

  itOnce('refuses a create that began before the removal', async (t) => {
    const database = await testDatabase(t);
    const { url } = database;
    await using storage = await database.open();
    const [alice, bob] = [await userWith(storage, 'alice', 0), await addToken(storage, 'bob')];
    const { caller } = await grantOf(storage, alice);
    const remove = ['user', 'remove', 'alice', '--yes', '--database', url];
    assert.equal(await runOk(remove), 'Removed user alice from store main.');
    await assert.rejects(storage.plants.create(caller, { name: 'late' }), {
      kind: 'invalid-token',
    });
    assert.equal(await plantsOf(storage, bob), 0);
  });
});

describe('token check', { concurrency: 2 }, () => {
  itOnce('shows whose a token is, and whether it is active', async (t) => {
    const database = await testDatabase(t);
    const { url } = database;
    await using storage = await database.open();
    const token = await addToken(storage, 'alice', { store: 'north', role: 'manager' });
    const id = idOf(token);
    const check = (...args: string[]) =>
      runOk(['token', 'check', '--database', url, ...args], { input: `${token}\n` });
    assert.equal(
      await check(),
      `Token ${id} of user alice (manager) in store north is active. Scopes: plants:read,plants:write.\n` +
        `To revoke it: npx plant-store token revoke ${id}`,
    );
    const value = { id, store: 'north', user: 'alice', role: 'manager' };
    const scopes = ['plants:read', 'plants:write'];
    assert.deepEqual(JSON.parse(await check('--json')), { ...value, scopes, state: 'active' });
    await runOk(['token', 'revoke', id, '--database', url]);
    assert.match(await check(), / is revoked\. Scopes: plants:read,plants:write\.$/);

    const unknown = makeToken(1);
    const outcome = await run(['token', 'check', '--database', url], { input: unknown });
    assert.deepEqual([outcome.status, outcome.stdout], [1, '']);
    const name = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : 'postgres';
    const message = `error: This is a Plant Store token with the id ${idOf(unknown)}, but ${name}`;
    assert.ok(outcome.stderr.startsWith(message), outcome.stderr);
    assert.match(outcome.stderr, /does not contain it\.\n$/);
  });

  test('checks only the form of a token without a database, and never prints it', async (t) => {
    const cwd = tempFolder(t);
    const token = makeToken(1);
    const check = (input: string, ...args: string[]) =>
      run(['token', 'check', ...args], { cwd, input });
    const { status, stdout } = await check(` ${token}\r\n\n`);
    assert.equal(status, 0);
    const missing = `There is no database at ${join(cwd, 'plant-store.db')}. To see whose token this is, set --database.`;
    assert.equal(stdout, `This is a Plant Store token with the id ${idOf(token)}. ${missing}\n`);
    const value = JSON.parse((await check(token, '--json')).stdout);
    assert.deepEqual(value, { id: idOf(token) });
    const nowhere = ['token', 'check', '--database', 'sqlite:nowhere.db'];
    const named = await run(nowhere, { input: token });
    assert.equal(named.status, 1);
    assert.match(named.stderr, /^error: There is no database at /);

    const last = token.at(-1) === '0' ? '1' : '0';
    const faults: [text: string, reason: string][] = [
      ['', 'it does not begin with plant_'],
      [`${token}0`, 'it has 65 characters instead of 64'],
      [`${token}\nx`, 'it has 66 characters instead of 64'],
      [token.slice(0, -1), 'it has 63 characters instead of 64'],
      [`${token.slice(0, -1)}-`, 'it has a character that no token has'],
      [token.slice(0, -1) + last, 'its checksum is wrong, so it is mistyped or made up'],
    ];
    for (const [text, reason] of faults) {
      const outcome = await run(['token', 'check'], { input: text });
      const stderr = `error: This is not a Plant Store token: ${reason}.\n`;
      assert.deepEqual(outcome, { status: 1, stdout: '', stderr });
    }
    assert.equal((await run(['token', 'check'], { input: token.repeat(100_000) })).status, 1);
  });

  test('is not the only command whose errors repeat no token', async (t) => {
    const at = ['--database', databaseFile(t).url];
    const token = makeToken(1);
    await runOk(['token', 'create', 'alice', ...at]);
    for (const args of [
      ['check', ...at],
      ['revoke', ...at],
      ['list', '--database'],
    ]) {
      const { status, stderr } = await run(['token', ...args, token]);
      assert.notEqual(status, 0);
      assert.match(stderr, /plant_\.\.\./);
      assert.ok(!stderr.includes(token));
    }
  });

  test('says on a terminal that it waits for the token', async (t) => {
    const { path, url } = databaseFile(t);
    const input = `${await fill(path, 0)}\n`;
    const check = ['token', 'check', '--database', url];
    const { status, stdout, stderr } = await run(check, { input, isTerminal: true });
    assert.deepEqual([status, stderr], [0, 'Paste the token, then press Enter: ']);
    assert.match(stdout, / is active\./);
  });
});
