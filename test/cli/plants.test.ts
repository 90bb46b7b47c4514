/**
 * The commands that use a running service, on a terminal, in a pipe and with other servers. words.test.ts has what they
 * print.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { startApp } from '../support/app.ts';
import { run, runHere, runOk, start } from '../support/command.ts';
import { listen } from '../support/listen.ts';
import { withIds } from '../support/many-rows.ts';
import { quotedExecutable, startOnTerminal } from '../support/on-terminal.ts';
import { freePort } from '../support/postgres.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';

describe('plants', { concurrency: 2 }, () => {
  const app = shared((t) => startApp(t));

  /** Commands of a user of their own. */
  async function setUp(user: string) {
    const token = await app().token(user);
    const env = { PLANT_STORE_URL: app().address, PLANT_STORE_TOKEN: token };
    return {
      env,
      ok: (...args: string[]) => runOk(['plants', ...args], { env }),
      add: async (names: readonly string[], tag = '') => {
        for (const name of names) {
          const { status } = await app().call('POST', '/plants', { token, json: { name, tag } });
          assert.equal(status, 201);
        }
      },
    };
  }

  it('list aligns wide characters on a terminal', async () => {
    const { env, add } = await setUp('wide');
    await add(['🪴', '日本語', 'e\u0301', 'a\u202eb', '👩‍🌾 x'], 'T');
    assert.equal(
      await shownBy(['plants', 'list', '--fields', 'name,tag'], env),
      [
        'NAME        TAG',
        '🪴          T',
        '日本語      T',
        'e\u0301           T',
        'a<U+202E>b  T',
        '👩‍🌾 x        T',
        '',
      ].join('\n'),
    );
  });

  it('list fits the terminal, on which it cuts long texts', async (t) => {
    const { env, add } = await setUp('narrow');
    await add(['日本語'.repeat(20), '👩‍🌾'.repeat(30), 'Aloe'], 'a tag of many words');
    const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const list = `${quotedExecutable} plants list --fields name,tag`;
    const terminal = startOnTerminal(t, `stty cols 40; ${settings.join(' ')} ${list}`);
    if (terminal === undefined) return;
    assert.equal(await terminal.ended, 0);
    const lines = [
      'NAME                 TAG',
      '日本語日本語日本語…  a tag of many words',
      '👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾…  a tag of many words',
      'Aloe                 a tag of many words',
      '',
    ];
    assert.equal(terminal.output(), lines.join('\n'));
  });

  it('list sorts, and prints how many plants there are', async () => {
    const { ok, add } = await setUp('sorting');
    await add(['ficus', 'Écorce', 'Aloe']);
    const names = ['list', '--csv', '--fields', 'name'];
    assert.equal(await ok(...names, '--sort', 'name'), 'name\nAloe\nÉcorce\nficus');
    assert.equal(await ok(...names, '--sort', '-name', '--limit', '1'), 'name\nficus');
    assert.equal(await ok('list', '--count'), '3');
    assert.equal(await ok('list', '--search', 'ECO', '--count', '--json'), '1');
  });

  it('history says that it is cut', async (t) => {
    const { address, token, database } = await startApp(t);
    const env = { PLANT_STORE_URL: address, PLANT_STORE_TOKEN: await token('alice') };
    await runOk(['plants', 'add', 'Monstera'], { env });
    await database.run(`
      INSERT INTO changes (store, position, previous, event, at, plant, owner, name, tag, is_restorable)
      ${withIds(99)} SELECT store, position + id, position + id - 1, 1, ${Date.now()}, 1, 1, 'a', '', 0 FROM stores, ids ORDER BY id; -- SQLite then gives them the right keys
      UPDATE stores SET position = position + 99; UPDATE plants SET position = position + 99`);
    const isCut = /^Only the latest 100 changes are shown\.$/m;
    assert.doesNotMatch(await shownBy(['plants', 'history', '1'], env), isCut);
    await runOk(['plants', 'edit', '1', '--tag', 'one more'], { env });
    assert.match(await shownBy(['plants', 'history', '1'], env), isCut);
    assert.equal((await runOk(['plants', 'history', '1'], { env })).split('\n').length, 100);
  });

  it('list prints as many pages as asked for, and succeeds quietly if its reader ends, as `head` does', async (t) => {
    const { address, token, database } = await startApp(t);
    const env = { PLANT_STORE_URL: address, PLANT_STORE_TOKEN: await token('alice') };
    const name = 'x'.repeat(200);
    await database.fill(Array.from({ length: 5_000 }, (_, at) => ({ id: at + 1, name, tag: '' })));
    const part = await runOk(['plants', 'list', '--limit', '1500', '--fields', 'id', '--csv'], {
      env,
    });
    assert.equal(part.split('\n').at(-1), '1500', 'more than a page');
    const under = ['sh', '-c', '"$@"; echo "status $?" >&2', 'sh'];
    const child = start(['plants', 'list', '--csv'], { env, under });
    const stderr = Array.fromAsync(child.stderr.setEncoding('utf8'));
    const [first] = (await once(child.stdout, 'data')) as [Buffer];
    assert.match(String(first), /^\u{feff}id,name,tag\n/u);
    child.stdout.destroy();
    await once(child, 'close');
    assert.equal((await stderr).join(''), 'status 0\n');
  });

  it('list shows what a hostile server sends on no terminal as it is, and in a pipe unchanged', async (t) => {
    const name = 'x\u001b]0;owned\u0007\u202e';
    const url = await answering(t, (response) => {
      response.end(JSON.stringify([{ id: 1, name, tag: { no: 'tag' } }]));
    });
    const env = { PLANT_STORE_URL: url, PLANT_STORE_TOKEN: 'any' };
    for (const format of ['--csv', '--json', '--fields=id,name,tag']) {
      const shown = await shownBy(['plants', 'list', format], env);
      for (const escape of '\u001b\u0007\u202e') assert.ok(!shown.includes(escape), shown);
      assert.match(shown, /owned/);
    }
    const { stdout } = await run(['plants', 'list', '--csv'], { env });
    assert.equal(stdout.split(',')[3], `"${name}"`);
  });

  it('list bounds the response of a server that never ends it', async (t) => {
    let sentBytes = 0;
    const url = await answering(t, (response) => {
      const chunk = 'x'.repeat(1_000_000);
      const send = () => {
        while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
        response.once('drain', send);
      };
      response.write('["');
      send();
    });
    const env = { PLANT_STORE_URL: url, PLANT_STORE_TOKEN: 'any' };
    const { status, stdout, stderr } = await run(['plants', 'list', '--json'], { env });
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, /^error: Cannot use Plant Store at .* The response is too long/);
    assert.ok(sentBytes < 100_000_000, `${sentBytes} bytes were sent`);
  });

  it('import shows a bar on a terminal only, and refusals below it', async (t) => {
    const { env } = await setUp('bar');
    const file = join(tempFolder(t), 'plants.csv');
    writeFileSync(file, 'name\nAloe\n" "x\n');
    const dumb = await shownBy(['plants', 'import', file], { ...env, TERM: 'dumb' });
    assert.ok(!dumb.includes('\u001b'), dumb);
    const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const command = `${settings.join(' ')} ${quotedExecutable} plants import ${file} --key other`;
    const terminal = startOnTerminal(t, command);
    if (terminal === undefined) return;
    assert.equal(await terminal.ended, 1);
    const shown = terminal.output();
    assert.match(shown, / 100% \| 2 of 2 rows/);
    assert.match(
      shown,
      /\nRefused rows:\n {2}line 3: " "x\n {4}The quotes .*\nAdded 1 plant; 1 row was refused\.\nTo undo .*\nAfter .*\n$/,
    );
  });

  it('list writes what import reads, as CSV and as JSON', async (t) => {
    const { ok, add } = await setUp('first');
    const folder = tempFolder(t);
    await add(['Monstera', '=cmd', "'=x", 'a,"b"', ' 🌱 ', 'c;-d'], '@tag');
    const fields = ['--fields', 'name,tag'];
    assert.match(await ok('list', '--csv', ...fields), /^'=cmd,'@tag$/m);
    for (const format of ['csv', 'json']) {
      const file = join(folder, `plants.${format}`);
      writeFileSync(file, await ok('list', `--${format}`, ...fields));
      const other = await setUp(`another, by ${format}`);
      assert.equal(await other.ok('import', file, '--concurrency', '1'), 'Added 6 plants.');
      assert.equal(await other.ok('list', ...fields), await ok('list', ...fields));
    }
  });

  it('show why a service cannot be used, and that a change may have been made', async (t) => {
    const { env } = await setUp('failures');
    const cutting = await listening(
      t,
      createServer((socket) => socket.once('data', () => socket.destroy())),
    );
    const closed = `http://127.0.0.1:${await freePort()}`;
    const failures: [args: string[], url: string, message: RegExp][] = [
      [['add', 'x'], closed, /^error: Cannot connect to http:.* ECONNREFUSED /],
      [['list'], 'http://127.0.0.1:9', /^error: Cannot connect to http:\/\/127\.0\.0\.1:9: /],
      [['add', 'x'], cutting, /^error: The response was lost, so the change may have been made\. /],
      [
        ['list'],
        app().address.replace('http:', 'https:'),
        /with TLS\. If the service has no certificate, use http in the address\.$/m,
      ],
    ];
    for (const [args, url, message] of failures) {
      const { status, stdout, stderr } = await run(['plants', ...args, '--url', url], { env });
      assert.deepEqual([status, stdout], [1, ''], stderr);
      assert.match(stderr, message);
    }
  });
});

/** What a terminal would show. */
async function shownBy(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { stdout, stderr } = await runHere(args, { env, isTerminal: true });
  return stdout + stderr;
}

/** A server that answers every request in this way, with status 200. */
async function answering(
  t: TestContext,
  answer: (response: ServerResponse) => void,
): Promise<string> {
  const server = createHttpServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    answer(response);
  });
  return listening(t, server);
}

async function listening(t: TestContext, server: Server): Promise<string> {
  return `http://127.0.0.1:${await listen(t, server)}`;
}
