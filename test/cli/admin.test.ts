/**
 * The commands about tokens, users, shares and the log, on many rows, beside a service, and on a terminal.
 * words.test.ts has what they print.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { maxOwnersInReach, scopes } from '../../src/access/access.ts';
import { makeToken } from '../../src/access/token.ts';
import { parseDurationMs } from '../../src/cli/options.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken, startApp, type TestApp } from '../support/app.ts';
import { runOk } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { addOwners } from '../support/many-rows.ts';
import { quotedExecutable, startOnTerminal } from '../support/on-terminal.ts';
import { idsOwnedBy } from '../support/scene.ts';
import { itOnce, testDatabase } from '../support/storages.ts';
import { identify, idOf, restoreTokens } from '../support/tokens.ts';

test('token create asks on the terminal, and leaves standard output to the token', async (t) => {
  const { folder, path, url } = databaseFile(t);
  const create = `${quotedExecutable} token create alice --database ${url}`;
  const terminal = startOnTerminal(t, `TOKEN=$(${create}); echo "the token is '$TOKEN'"`);
  if (terminal === undefined) return;
  await terminal.shows(/^The database (\S+) does not exist\. Create it\? \[y\/N\] $/m);
  terminal.type('y\n');
  assert.equal(await terminal.ended, 0);
  const [, token = ''] = /^the token is '(plant_\w{58})'$/m.exec(terminal.output()) ?? [];
  assert.ok(terminal.output().includes(`\nDatabase: ${path} (new)\nCreated token ${idOf(token)} `));
  for (const file of readdirSync(folder)) {
    assert.ok(!readFileSync(join(folder, file)).includes(token), `${file} has the token`);
  }
});

test('a token expires after its lifetime, in any unit', async (t) => {
  const lifetimes = ['1s', '2m', '12h', '90d', '999999d'].map(parseDurationMs);
  assert.deepEqual(lifetimes, [1_000, 120_000, 43_200_000, 7_776_000_000, 86_399_913_600_000]);
  const { url } = databaseFile(t);
  const beforeMs = Date.now();
  const create = ['token', 'create', 'alice', '--expires', '90d', '--json', '--database', url];
  const { expiresAt } = JSON.parse(await runOk(create));
  const lifetimeMs = Date.parse(expiresAt) - beforeMs;
  assert.ok(lifetimeMs >= 7_776_000_000 && lifetimeMs < 7_776_060_000, `${lifetimeMs} ms`);
});

test('lists have every row of any number, and access names a share that is not in effect', async (t) => {
  const database = await testDatabase(t);
  const { url } = database;
  await using storage = await database.open();
  const bob = await identify(storage, await addToken(storage, 'bob'));
  assert.ok(bob);
  await database.run(addOwners(maxOwnersInReach, 'bob'));
  await addToken(storage, 'alice', { store: 'south' });
  const tokens = 1_001; // more than are read at once, twice
  const more = Array.from({ length: tokens - 1 }, () => makeToken(1));
  await restoreTokens(url, bob.caller, more);

  const printed = (...args: string[]) => runOk([...args, '--database', url]);
  const rowsOf = async (...args: string[]) => {
    const rows: unknown[] = JSON.parse(await printed(...args, '--json'));
    return new Set(rows.map((row) => JSON.stringify(row))).size;
  };
  assert.equal(await rowsOf('token', 'list', '--store', 'main'), tokens);
  assert.equal(await rowsOf('token', 'list', '--store', 'south'), 1);
  assert.equal(await rowsOf('token', 'list'), tokens + 1);
  assert.equal(await rowsOf('user', 'list'), maxOwnersInReach + 2);
  assert.equal(await rowsOf('shares'), maxOwnersInReach);
  assert.match(
    await printed('access', 'bob', '1000'),
    /^bob cannot read plant 1000: owner 1000 shares .* has the maximum number of shares/,
  );
});

itOnce(
  'user remove ends tokens and shares, and moves plants between the writes of others',
  async (t) => {
    const app = await startApp(t);
    const { storage, database } = app;
    const alice = await firstUserWith(app, 3_001);
    const [bob, carol] = [await app.token('bob'), await app.token('carol')];
    await app.call('PUT', '/shares/carol', { token: alice, json: { access: 'read' } });
    const list = (token: string) => app.call('GET', '/plants?limit=1', { token });
    assert.deepEqual((await list(carol)).json, [{ name: 'alice 0', tag: '' }]);

    const remove = ['user', 'remove', 'alice', '--yes', '--database', database.url];
    await assert.rejects(runOk(remove), /This user owns plants\./);
    assert.equal((await list(alice)).status, 200);
    const ended = new AbortController();
    const removing = runOk([...remove, '--plants-to', 'bob']).finally(() => ended.abort());
    let created = 0;
    for (; !ended.signal.aborted; created++) {
      const { status } = await app.call('POST', '/plants', { token: bob, json: { name: 'bob' } });
      assert.equal(status, 201);
    }
    assert.equal(await removing, 'Removed user alice from store main. Moved 3001 plants to bob.');
    assert.ok(created > 3, `${created} plants were created meanwhile`);
    const { changes } = await storage.log.list({ store: 'main', limit: 20_000 });
    const moved = changes.filter(({ event }) => event === 'moved');
    const last = moved.at(-1)?.position ?? 0;
    const others = last - (moved[0]?.position ?? 0) + 1 - moved.length;
    assert.ok(others > 0, 'in batches, between which others write');
    assert.equal(await plantsOf(storage, bob), 3_001 + created);
    assert.equal((await list(alice)).status, 401);
    assert.deepEqual((await list(carol)).json, []);
    const again = await runOk(['token', 'create', 'alice', '--yes', '--database', database.url]);
    assert.deepEqual((await list(again)).json, []);
  },
);

itOnce('log --since reads a part of the log, and finds what is out of order', async (t) => {
  const app = await startApp(t);
  const env = { PLANT_STORE_DATABASE: app.database.url };
  await app.token('alice');
  const [rows, minuteMs] = [40_000, 60_000];
  // A change each 20 seconds for 9 days, by processes whose clocks differ by half an hour.
  const startMs = Date.now() - rows * 20_000;
  await app.database.run(`
    WITH RECURSIVE rows (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM rows WHERE at < ${rows})
    INSERT INTO changes (store, position, event, at, plant, owner, name, tag, is_restorable)
    SELECT (SELECT min(store) FROM stores), at + 2, 1, ${startMs} + at * 20000 - (at % 2) * ${30 * minuteMs}, at, 1, 'a', '', 0
    FROM rows;
    UPDATE changes SET at = ${startMs} WHERE position <= 2;
    UPDATE stores SET position = ${rows} + 2`);
  const read = async (...args: string[]) => {
    const before = process.cpuUsage();
    const printed = await runOk(['log', ...args], { env });
    const { user, system } = process.cpuUsage(before);
    return { cpu: user + system, found: printed.split('\n').length };
  };
  const whole = await read('--user', 'alice');
  const since = await read('--since', '60m');
  assert.ok(Math.abs(since.found - 135) <= 2, `${since.found}`); // 90 of the even ones, 45 of the others
  const plant = await read('--plant', '20000');
  assert.equal(plant.found, 1);
  assert.ok(since.cpu * 3 < whole.cpu, `${since.cpu} and ${whole.cpu} µs`);
});

/** Creates alice, as the first user, with many plants. Returns a token. */
async function firstUserWith({ storage, database }: TestApp, plants: number): Promise<string> {
  const token = await addToken(storage, 'alice', { scopes });
  const plant = (at: number) => ({ id: at + 1, tag: '', name: `alice ${at}` });
  await database.fill(Array.from({ length: plants }, (_, at) => plant(at)));
  return token;
}

async function plantsOf(storage: Storage, token: string): Promise<number> {
  const grant = await identify(storage, token);
  assert.ok(grant);
  return (await idsOwnedBy(storage, grant.caller)).length;
}
