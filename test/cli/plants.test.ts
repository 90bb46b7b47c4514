/**
 * The commands that use a running service.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { PlantStore } from '../../src/client/client.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { startApp } from '../support/app.ts';
import { executable, run, runOk, start } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { freePort } from '../support/postgres.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { without } from '../support/programs.ts';

interface Setup {
  env: Record<string, string>;
  /** Runs `plants` with these arguments. */
  plants: (...args: string[]) => ReturnType<typeof run>;
  ok: (...args: string[]) => Promise<string>;
  /** Adds plants without a command. */
  add: (names: readonly string[], tag?: string) => Promise<void>;
}

async function setUp(t: TestContext): Promise<Setup> {
  const app = await startApp(t);
  const token = await app.token('alice', { role: 'manager' });
  const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
  return {
    env,
    plants: (...args) => run(['plants', ...args], { env }),
    ok: (...args) => runOk(['plants', ...args], { env }),
    async add(names, tag = '') {
      for (const name of names) {
        const { status } = await app.call('POST', '/plants', { token, json: { name, tag } });
        assert.equal(status, 201);
      }
    },
  };
}

/** What a terminal would show. */
async function shownBy(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { stdout, stderr } = await run(args, { env, isTerminal: true });
  return stdout + stderr;
}

/** What a real terminal shows. */
async function onTerminal(args: readonly string[], env: Record<string, string>): Promise<string> {
  const words = [process.execPath, executable, ...args].map((word) => `'${word}'`);
  const command = `stty cols 200; ${words.join(' ')}`;
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const shown = await Array.fromAsync(child.stdout.setEncoding('utf8'));
  return shown.join('').replaceAll('\r\n', '\n');
}

describe('plants', { concurrency: 2 }, () => {
  /** A service with plants that take a while to list. */
  const long = shared(async (t) => {
    const { path } = databaseFile(t);
    const token = await fill(path, 10_000);
    const open = async () => new SqliteStorage(path, { create: false });
    const { address } = await startApp(t, { open });
    return { PLANT_STORE_URL: address, PLANT_STORE_TOKEN: token };
  });

  it('add, list and rm print JSON into a pipe', async (t) => {
    const { env, plants, ok } = await setUp(t);
    assert.equal(await ok('list'), '[]');
    assert.equal(await ok('add', 'Monstera'), '{"id":1,"name":"Monstera","tag":""}');
    assert.equal(
      await ok('add', 'Ficus', '--tag', 'indoor', '--id', '40'),
      '{"id":40,"name":"Ficus","tag":"indoor"}',
    );
    assert.deepEqual(JSON.parse(await ok('list')), [
      { id: 1, name: 'Monstera', tag: '' },
      { id: 40, name: 'Ficus', tag: 'indoor' },
    ]);
    assert.equal(await ok('list', '--tag', 'indoor', '--fields', 'name'), '[\n{"name":"Ficus"}\n]');
    const search = ['--search', 'FÍCUS', '--fields', 'id'];
    assert.equal(await ok('list', ...search), '[\n{"id":40}\n]');
    assert.equal(await ok('list', ...search, '--tag', 'outdoor'), '[]');
    assert.equal(await ok('list', '--limit', '1', '--csv'), 'id,name,tag\n1,Monstera,');
    const whose = ['--fields', 'access,owner', '--limit', '1'];
    assert.equal(await ok('list', ...whose), '[\n{"access":"write","owner":"alice"}\n]');
    const { status, stdout, stderr } = await plants('rm', '1', '40', '41');
    assert.equal(status, 1);
    assert.deepEqual(stdout.trim().split('\n').toSorted(), [
      'Deleted plant 1: Monstera. Undo: npx plant-store plants restore 1',
      'Deleted plant 40: Ficus. Undo: npx plant-store plants restore 40',
    ]);
    assert.match(stderr, /^error: There is no plant 41, or you do not have access to it\.\n$/);
    assert.equal((await plants('rm', '5', '--json')).stdout, '{"id":5,"status":"not found"}\n');
    await ok('add', 'Ivy', '--id', '7');
    const url = String(env['PLANT_STORE_URL']);
    assert.equal(
      await ok('rm', '7', '--url', url),
      `Deleted plant 7: Ivy. Undo: npx plant-store plants restore 7 --url '${url}'`,
    );
    assert.equal(await ok('list'), '[]');
  });

  it('rm, edit and restore say only what the token can see or change', async (t) => {
    const app = await startApp(t);
    const alice = await app.token('alice', { scopes });
    await app.call('POST', '/plants', { token: alice, json: { name: 'Monstera', tag: 'hers' } });
    await app.call('PUT', '/shares/bob', { token: alice, json: { access: 'read' } });
    const envOf = (token: string) => ({
      PLANT_STORE_URL: app.address,
      PLANT_STORE_TOKEN: token,
    });
    const refused = await run(['plants', 'rm', '1'], { env: envOf(await app.token('bob')) });
    assert.deepEqual(
      [refused.status, refused.stdout, refused.stderr],
      [1, '', 'error: You can see plant 1, but not delete it.\n'],
    );
    const writing = envOf(await app.token('alice', { scopes: ['plants:write'] }));
    assert.equal(
      await shownBy(['plants', 'edit', '1', '--tag', 'x'], writing),
      'Updated plant 1.\n',
    );
    await app.call('DELETE', '/plants/1', { token: alice });
    assert.equal(await shownBy(['plants', 'restore', '1'], writing), 'Restored plant 1.\n');
  });

  it('edit, restore and history change a plant and show who changed it', async (t) => {
    const { env, plants, ok } = await setUp(t);
    await ok('add', 'Monstra', '--tag', 'indoor');
    const edited = '{"id":1,"name":"Monstera","tag":"indoor"}';
    assert.equal(await ok('edit', '1', '--name', 'Monstera'), edited);
    assert.equal(await ok('edit', '1', '--tag', ''), '{"id":1,"name":"Monstera","tag":""}');
    assert.equal(
      await ok('rm', '1'),
      'Deleted plant 1: Monstera. Undo: npx plant-store plants restore 1',
    );
    assert.equal(await ok('restore', '1'), '{"id":1,"name":"Monstera","tag":""}');
    const lines = (await ok('history', '1')).split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ event, user, before }) => [event, user, before?.name, before?.tag]),
      [
        ['restored', 'alice', undefined, undefined],
        ['deleted', 'alice', 'Monstera', ''],
        ['updated', 'alice', 'Monstera', 'indoor'],
        ['updated', 'alice', 'Monstra', 'indoor'],
        ['created', 'alice', undefined, undefined],
      ],
    );
    assert.match(
      await shownBy(['plants', 'edit', '1', '--name', 'Fern'], env),
      /^Updated plant 1: Fern\.\n$/,
    );
    assert.match(
      await shownBy(['plants', 'history', '1'], env),
      /^AT +USER +CHANGE +NAME BEFORE +TAG BEFORE +OWNER BEFORE\n\S+ +alice +updated +Monstera +alice\n/,
    );
    const { status, stderr } = await plants('edit', '1');
    assert.equal(status, 2);
    assert.match(stderr, /Nothing to change\. Set a new name with --name/);
    assert.match((await plants('restore', '1')).stderr, /already has a plant with the id 1/);
    assert.match((await plants('restore', '7')).stderr, /There is no plant with this id/);
  });

  it('list --deleted shows what can be restored, and who deleted it', async (t) => {
    const { env, plants, ok, add } = await setUp(t);
    assert.equal(await ok('list', '--deleted'), '[]');
    await add(['Monstera', 'Ficus'], 'indoor');
    await ok('rm', '1');
    await ok('rm', '2');
    const listed = JSON.parse(await ok('list', '--deleted'));
    const both = { tag: 'indoor', owner: 'alice', deletedBy: 'alice' };
    assert.partialDeepStrictEqual(listed, [
      { id: 2, name: 'Ficus', ...both },
      { id: 1, name: 'Monstera', ...both },
    ]);
    const [{ deletedAt }] = listed;
    const csv = await ok('list', '--deleted', '--csv', '--limit', '1');
    assert.equal(
      csv,
      `id,name,tag,owner,deletedAt,deletedBy\n2,Ficus,indoor,alice,${deletedAt},alice`,
    );
    const table = await shownBy(['plants', 'list', '--deleted'], env);
    const [head, first] = table.split('\n');
    assert.match(head ?? '', /^ID +NAME +TAG +OWNER +DELETED AT +DELETED BY$/);
    assert.match(first ?? '', new RegExp(`^2 +Ficus +indoor +alice +${deletedAt} +alice$`));
    for (const other of [
      ['--tag', 'a'],
      ['--search', 'a'],
      ['--fields', 'id'],
    ]) {
      const { status, stderr } = await plants('list', '--deleted', ...other);
      assert.equal(status, 2);
      assert.match(stderr, /'--deleted' cannot be used with option '--/);
    }
    await ok('restore', '1');
    assert.equal(JSON.parse(await ok('list', '--deleted')).length, 1);
  });

  it('history says that it is cut', async (t) => {
    const { env, ok, add } = await setUp(t);
    await add(['Monstera']);
    const store = new PlantStore({
      url: env['PLANT_STORE_URL'] ?? '',
      token: env['PLANT_STORE_TOKEN'] ?? '',
    });
    const change = async (tag: string) => store.update(1, { tag });
    for (let at = 1; at < 100; at++) await change(`tag ${at}`);
    const isCut = /^Only the latest 100 changes are shown\.$/m;
    assert.doesNotMatch(await shownBy(['plants', 'history', '1'], env), isCut);
    await change('one more');
    assert.match(await shownBy(['plants', 'history', '1'], env), isCut);
    assert.equal((await ok('history', '1')).split('\n').length, 100);
  });

  it('rm needs no scope to read', async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice', { scopes: ['plants:write'] });
    await app.call('POST', '/plants', { token, json: { name: 'Monstera' } });
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
    assert.equal(
      await runOk(['plants', 'rm', '1'], { env }),
      'Deleted plant 1. Undo: npx plant-store plants restore 1',
    );
  });

  it(
    'list prints an aligned table on a terminal, and hides no control character',
    { skip: without('script') },
    async (t) => {
      const { env, add } = await setUp(t);
      await add(['🪴', '日本語', 'e\u0301', 'a\u202eb', '👩‍🌾 x'], 'T');
      assert.equal(
        await onTerminal(['plants', 'list'], env),
        [
          'ID  NAME        TAG',
          '1   🪴          T',
          '2   日本語      T',
          '3   e\u0301           T',
          '4   a<U+202E>b  T',
          '5   👩‍🌾 x        T',
          '',
        ].join('\n'),
      );
      assert.equal(await shownBy(['plants', 'add', 'new'], env), 'Added plant 6: new.\n');
      assert.match(
        await shownBy(['plants', 'list', '--json'], env),
        /^\{"id":4,"name":"a\\u202eb","tag":"T"\},$/m,
      );
    },
  );

  it('list succeeds quietly if its reader ends, as in `plants list | head`', async () => {
    const under = ['sh', '-c', '"$@"; echo "status $?" >&2', 'sh'];
    const child = start(['plants', 'list', '--csv'], { env: long(), under });
    const stderr = Array.fromAsync(child.stderr.setEncoding('utf8'));
    const [first] = (await once(child.stdout, 'data')) as [Buffer];
    assert.match(String(first), /^id,name,tag\n/);
    child.stdout.destroy();
    await once(child, 'close');
    assert.equal((await stderr).join(''), 'status 0\n');
  });

  it('get shows a plant', async (t) => {
    const { env, plants, ok, add } = await setUp(t);
    await add(['a\u202eb'], 'T');
    assert.deepEqual(JSON.parse(await ok('get', '1')), { id: 1, name: 'a\u202eb', tag: 'T' });
    assert.equal(
      await shownBy(['plants', 'get', '1'], env),
      'ID  NAME        TAG\n1   a<U+202E>b  T\n',
    );
    const { status, stdout, stderr } = await plants('get', '2');
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(
      stderr,
      /^error: There is no plant with this id, or you do not have access to it\.$/m,
    );
  });

  const hostile =
    'list shows what a hostile server sends on no terminal as it is, and in a pipe unchanged';
  it(hostile, async (t) => {
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
    assert.equal(
      (await run(['plants', 'list', '--csv'], { env })).stdout.split(',')[3],
      `"${name}"`,
    );
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

  it(
    'import shows a bar on a terminal only, and refusals above it',
    { skip: without('script') },
    async (t) => {
      const { env } = await setUp(t);
      const file = join(tempFolder(t), 'plants.csv');
      writeFileSync(file, 'name\nAloe\n" "x\n');
      const shown = await onTerminal(['plants', 'import', file], env);
      assert.ok(shown.includes('\r\u001b[Kline 3: The quotes do not match.'), shown);
      assert.match(shown, / 100% \| 2 of 2 rows/);
      assert.match(shown, /\nAdded 1 plant; 1 row was refused\.\nAfter you fix .*\n$/);
      const dumb = await onTerminal(['plants', 'import', file], { ...env, TERM: 'dumb' });
      assert.ok(!dumb.includes('\u001b'), dumb);
    },
  );

  it('list writes what import reads, as CSV and as JSON', async (t) => {
    const { ok, add } = await setUp(t);
    const folder = tempFolder(t);
    await add(['Monstera', '=cmd', "'=x", 'a,"b"', ' 🌱 ', 'c;-d'], '@tag');
    assert.match(await ok('list', '--csv'), /^2,'=cmd,'@tag$/m);
    for (const format of ['csv', 'json']) {
      const file = join(folder, `plants.${format}`);
      writeFileSync(file, await ok('list', `--${format}`));
      const other = await setUp(t);
      assert.equal(await other.ok('import', file), 'Added 6 plants.');
      assert.equal(await other.ok('list'), await ok('list'));
    }
  });

  it('take the token from a file or standard input, and never print it', async (t) => {
    const { env, plants } = await setUp(t);
    const token = env['PLANT_STORE_TOKEN'] ?? '';
    const file = join(tempFolder(t), 'token');
    writeFileSync(file, `${token}\n`);
    const url = { PLANT_STORE_URL: env['PLANT_STORE_URL'] ?? '' };
    assert.equal(await runOk(['plants', 'list', '--token', `@${file}`], { env: url }), '[]');
    const input = `${token}\n`;
    assert.equal(await runOk(['plants', 'list', '--token', '-'], { env: url, input }), '[]');
    for (const pasted of [`Bearer ${token}`, `http://127.0.0.1:8080/#token=${token}`]) {
      assert.equal(await runOk(['plants', 'list', '--token', pasted], { env: url }), '[]');
    }
    const failures = {
      '': /^error: No token is set\. Set one in PLANT_STORE_TOKEN or with --token\. Create one with ".*"\.$/m,
      'plant_ 0': /^error: The token contains characters that no token can have\./m,
      plant_0: /^error: .* Set another token in PLANT_STORE_TOKEN or with --token\.$/m,
      '@/nowhere/token': /^error: Cannot read the token from \/nowhere\/token: there is no /m,
    };
    for (const [wrong, message] of Object.entries(failures)) {
      const { status, stderr } = await plants('list', '--token', wrong);
      assert.notEqual(status, 0);
      assert.match(stderr, message);
      assert.ok(!stderr.includes('plant_'), stderr);
    }
  });

  it('say what is wrong with the address, the arguments and the plant', async (t) => {
    const { plants, env } = await setUp(t);
    const cutting = await listening(
      t,
      createServer((socket) => socket.once('data', () => socket.destroy())),
    );
    const closed = `http://127.0.0.1:${await freePort()}`;
    const failures: [string[], number, RegExp][] = [
      [
        ['list', '--url', 'http://127.0.0.1:9'],
        1,
        /^error: Cannot connect to http:\/\/127\.0\.0\.1:9: /,
      ],
      [['add', 'x', '--url', closed], 1, /^error: Cannot connect to http:.* ECONNREFUSED /],
      [['add', 'x', '--url', cutting], 1, /^error: The response was lost, so the change may have/],
      [
        ['list', '--url', `${env['PLANT_STORE_URL']}/other`],
        1,
        /^error: Cannot use Plant Store at /,
      ],
      [
        ['list', '--url', `${env['PLANT_STORE_URL']}/plants`],
        1,
        /Use the address without \/plants/,
      ],
      [
        ['list', '--url', String(env['PLANT_STORE_URL']).replace('http:', 'https:')],
        1,
        /with TLS\. If the service has no certificate, use http in the address\.$/m,
      ],
      [['list', '--url', 'ftp://x'], 2, /Use an http or https URL/],
      [
        ['list', '--fields', 'name,nmae'],
        2,
        /Use one or more of id, name, tag, owner, access, each once\./,
      ],
      [['list', '--json', '--csv'], 2, /cannot be used with/],
      [['add', ''], 2, /Use a value that is not blank\./],
      [['add', 'x', '--id', '0'], 2, /Use an integer from 1 to 9007199254740991\./],
      [['rm', 'Monstera'], 2, /Use an integer from 1 to 9007199254740991\./],
    ];
    for (const [args, expected, message] of failures) {
      const { status, stdout, stderr } = await plants(...args);
      assert.deepEqual([status, stdout], [expected, ''], stderr);
      assert.match(stderr, message);
    }
  });
});

/** A server that answers every request in this way, with status 200. */
async function answering(
  t: TestContext,
  answer: (response: ServerResponse) => void,
): Promise<string> {
  const server = createHttpServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    answer(response);
  });
  t.after(() => server.closeAllConnections());
  return listening(t, server);
}

/** The address of a server, which is closed after the test. */
async function listening(t: TestContext, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
}
