import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { isToken } from '../../src/access/token.ts';
import { addToken, call, startApp } from '../support/app.ts';
import { run, runOk } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { quotedExecutable, startOnTerminal } from '../support/on-terminal.ts';
import { idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';

/** The rows that `token list` prints, by column. */
async function list(url: string, ...args: string[]): Promise<Record<string, string>[]> {
  const printed = await runOk(['token', 'list', '--database', url, ...args]);
  const [header = '', ...lines] = printed.split('\n');
  const columns = [...header.matchAll(/\w+(?: \w+)* */g)];
  return lines.map((line) =>
    Object.fromEntries(
      columns.map(({ 0: name, index }, at) => [
        name.trim(),
        line.slice(index, columns[at + 1]?.index).trim(),
      ]),
    ),
  );
}

describe('token create', { concurrency: 2 }, () => {
  it('prints only the token on standard output, and a note on standard error', async (t) => {
    const { folder, path, url } = databaseFile(t);
    const args = ['token', 'create', 'alice', '--database', url];
    const { status, stdout, stderr } = await run(args);
    assert.equal(status, 0);
    assert.match(stdout, /^plant_\w{58}\n$/);
    const token = stdout.trim();
    assert.ok(isToken(token));
    const id = idOf(token);
    assert.equal(
      stderr,
      `Database: ${path} (new)\n` +
        `Created token ${id} for new user alice in new store main. Save it now: it is not shown again.\n`,
    );
    const again = (await run(args)).stderr.replace(/\w{9}-\w{16}/, 'ID');
    const note =
      'Created token ID for user alice in store main. Save it now: it is not shown again.';
    assert.equal(again, `Database: ${path}\n${note}\n`);
    for (const file of readdirSync(folder)) {
      assert.ok(!readFileSync(join(folder, file)).includes(token), `${file} has the token`);
    }
  });

  it('accepts the longest lifetime, in any unit', async (t) => {
    const { url } = databaseFile(t);
    await runOk(['token', 'create', 'alice', '--expires', '999999d', '--database', url]);
    assert.match((await list(url))[0]?.['EXPIRES'] ?? '', /^47\d\d-/);
  });

  it('changes the role of the user only if --role is given', async (t) => {
    const { url } = databaseFile(t);
    const create = (...args: string[]) =>
      runOk(['token', 'create', 'alice', '--database', url, ...args]);
    const roles = async () => (await list(url)).map(({ ROLE }) => ROLE);
    await create();
    assert.deepEqual(await roles(), ['member']);
    await create('--role', 'manager');
    assert.deepEqual(await roles(), ['manager', 'manager']);
    await create();
    assert.deepEqual(await roles(), ['manager', 'manager', 'manager']);
    await create('--role', 'member');
    assert.deepEqual(new Set(await roles()), new Set(['member']));
  });
});

/** As Ctrl-D on a terminal. */
const endOfInput = '';
const newDatabase = /^The database (\S+) does not exist\. Create it\? \[y\/N\] $/m;

describe('token create on a terminal', { concurrency: 2 }, () => {
  it('asks before it creates a database, and creates nothing unless the answer is yes', async (t) => {
    const { folder, path, url } = databaseFile(t);
    const create = ['token', 'create', 'alice', '--database', url];
    const advice =
      'Run the command in the folder of the database, or set its path with --database.';
    for (const input of ['\n', 'yesterday\n', endOfInput]) {
      const { status, stdout, stderr } = await run(create, { input, isTerminal: true });
      assert.deepEqual([status, stdout], [1, '']);
      assert.ok(
        stderr.startsWith(`The database ${path} does not exist. Create it? [y/N] `),
        stderr,
      );
      assert.ok(stderr.endsWith(`error: Nothing was created. ${advice}\n`), stderr);
      assert.deepEqual(readdirSync(folder), []);
    }
  });

  it('asks once for a new database, and leaves standard output to the token', async (t) => {
    const { path, url } = databaseFile(t);
    const create = `${quotedExecutable} token create alice --database ${url}`;
    const terminal = startOnTerminal(t, `TOKEN=$(${create}); echo "the token is '$TOKEN'"`);
    if (terminal === undefined) return;
    await terminal.shows(newDatabase);
    terminal.type('y\n');
    assert.equal(await terminal.ended, 0);
    assert.match(terminal.output(), /^the token is 'plant_\w{58}'$/m);
    assert.match(terminal.output(), new RegExp(`^Database: ${path} \\(new\\)$`, 'm'));
  });

  it('asks nothing for the first user of an empty database, an existing user, or with --yes', async (t) => {
    const { path, url } = databaseFile(t);
    await runOk(['migrate', '--database', url]);
    for (const args of ['alice', 'alice', 'bob --store north --yes']) {
      const create = ['token', 'create', ...args.split(' '), '--database', url];
      const { status, stdout, stderr } = await run(create, { isTerminal: true });
      assert.equal(status, 0);
      assert.match(stderr, /^Database: \S+\nCreated token .*\n$/);
      assert.match(stdout, /^plant_\w{58}\n$/);
    }
    const createNew = ['token', 'create', 'alice', '--database', `${url}.new`, '--yes'];
    const fresh = await run(createNew, { isTerminal: true });
    assert.equal(fresh.status, 0);
    assert.ok(fresh.stderr.startsWith(`Database: ${path}.new (new)\nCreated token `));
  });
});

describe('token list', { concurrency: 2 }, () => {
  it('shows expired and revoked tokens too, with their states', async (t) => {
    const { path, url } = databaseFile(t);
    await using storage = new SqliteStorage(path, { create: true });
    await addToken(storage, 'active');
    await addToken(storage, 'expired', { expiresAtMs: Date.now() });
    const revoked = await addToken(storage, 'revoked', { expiresAtMs: Date.now() });
    await storage.identity.revokeToken(idOf(revoked), Date.now());
    const rows = await list(url);
    for (const { USER, STATE } of rows) assert.equal(USER, STATE);
    assert.equal(rows.length, 3);
    const ids = rows.map(({ ID = '' }) => ID);
    assert.ok(
      ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? '')),
      'in the order of ids',
    );
  });

  it('shows only the tokens of the store given by --store, any number of them', async (t) => {
    const { path, url } = databaseFile(t);
    await using storage = new SqliteStorage(path, { create: true });
    const many = 1_001; // more than are read at once, twice
    const made = Array.from({ length: many }, () => addToken(storage, 'alice', { store: 'north' }));
    await Promise.all(made);
    await addToken(storage, 'bob', { store: 'south' });
    assert.equal((await list(url)).length, many + 1);
    assert.equal(new Set((await list(url, '--store', 'north')).map(({ ID }) => ID)).size, many);
    assert.deepEqual(
      (await list(url, '--store', 'south')).map(({ USER }) => USER),
      ['bob'],
    );
    await assert.rejects(list(url, '--store', 'west'), /There is no store west/);
  });
});

describe('a token and the running service', { concurrency: 2 }, () => {
  it('works from its creation until its revocation', async (t) => {
    const { address, database } = await startApp(t);
    const { url } = database;
    const token = await runOk(['token', 'create', 'alice', '--database', url]);
    const status = async () => (await call(`${address}/plants`, 'GET', { token })).status;
    assert.equal(await status(), 200);

    const id = idOf(token);
    const revoke = ['token', 'revoke', id, '--database', url];
    assert.equal(await runOk(revoke), `Revoked token ${id} of user alice in store main.`);
    await until('the token is refused', async () => (await status()) === 401, 1_000);
    assert.match(await runOk(revoke), /^Revoked token /, 'a second time does no harm');
    assert.deepEqual(
      (await list(url)).map(({ STATE }) => STATE),
      ['revoked'],
    );
  });

  it('is refused after its expiry', async (t) => {
    const { address, database } = await startApp(t);
    const { url } = database;
    const create = ['token', 'create', 'alice', '--expires', '1s', '--database', url];
    const token = await runOk(create);
    const answer = () => call(`${address}/plants`, 'GET', { token });
    await until('the token is refused', async () => (await answer()).status === 401, 3_000);
    assert.match((await answer()).text, /The token is expired\. Get a new one\./);
  });
});
