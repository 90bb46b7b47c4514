/**
 * `plants import` as a process.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { limitedTo, override, startApp, type TestApp } from '../support/app.ts';
import { run, runOk } from '../support/command.ts';
import { tempFolder } from '../support/temp.ts';
import { importInterrupted } from './import.ts';

const slowRows = 200;
const addAgain = 'To add rows again that were already added, choose another --key.';

/** A service that creates half of the rows of a file, and the others once it may resume. */
async function startSlow(t: TestContext) {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { promise: resumed, resolve: resume } = Promise.withResolvers<void>();
  t.after(() => resume()); // otherwise the service would wait for the rest
  let created = 0;
  const app = await startApp(t, {
    wrap: (storage) =>
      override(storage, {
        plants: {
          async create(...args) {
            if (++created > slowRows / 2) {
              begin();
              await resumed;
            }
            return storage.plants.create(...args);
          },
        },
      }),
  });
  const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: await app.token('alice') };
  const file = join(tempFolder(t), 'plants.csv');
  writeFileSync(file, `name\n${Array.from({ length: slowRows }, (_, at) => `${at}\n`).join('')}`);
  return { app, env, file, begun, resume };
}

/** The sorted names of all plants of the token. */
async function namesOf(app: TestApp, token: string): Promise<string[]> {
  const plants: { name: string }[] = JSON.parse((await app.call('GET', '/plants', { token })).text);
  return plants.map(({ name }) => name).toSorted();
}

describe('plants import', { concurrency: 2 }, () => {
  it('names the line and the reason of each refusal, and fails', async (t) => {
    const app = await startApp(t);
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: await app.token('alice') };
    const file = join(tempFolder(t), 'plants.csv');
    writeFileSync(file, 'name;tag\nMonstera;indoor\n"a\u009b";\n"b;c\n');
    const { status, stdout, stderr } = await run(['plants', 'import', file], { env });
    assert.deepEqual([status, stdout], [1, 'Added 1 plant; 2 rows were refused.\n']);
    assert.match(
      stderr,
      /^line 4: The quotes do not match\. .*\nline 3: "name" has a control character \(U\+009B\)\. .*\nAfter you fix the file, run the same command with --key [0-9a-f]{32} to add only what is new\.\n$/,
    );
  });

  it('reads standard input, and prints JSON', async (t) => {
    const app = await startApp(t);
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: await app.token('alice') };
    const input = '[{"name": "Monstera"}, {"name": ""}]';
    const args = ['plants', 'import', '-', '--json'];
    const { status, stdout, stderr } = await run(args, { env, input });
    assert.equal(status, 1);
    const outcomes = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const [refused, added, ...others] = outcomes.toSorted((one, other) => other.row - one.row);
    assert.deepEqual(refused, { row: 2, status: 'refused', reason: refused.reason });
    assert.deepEqual([added, others], [{ row: 1, status: 'added', id: 1 }, []]);
    assert.match(stderr, /^Added 1 plant; 1 row was refused\.\nAfter you fix the file, run .*\n$/);
  });

  it('names the key with which an import of standard input continues', async (t) => {
    const { app, env, file, begun, resume } = await startSlow(t);
    const input = readFileSync(file, 'utf8');
    const importing = run(['plants', 'import', '-'], { env, input });
    await begun;
    process.kill(process.pid, 'SIGINT');
    const { status, stderr } = await importing;
    assert.equal(status, 130);
    const [, key = ''] =
      /^The import is not complete\. Run the same command with --key (\S+) to continue\.\n$/.exec(
        stderr,
      ) ?? [];
    resume();
    const again = ['plants', 'import', '-', '--key', key];
    assert.match(
      await runOk(again, { env, input }),
      /^Added \d+ plants; \d+ were already added\.$/,
    );
    assert.equal((await namesOf(app, env.PLANT_STORE_TOKEN)).length, slowRows);
    assert.equal(
      await runOk(['plants', 'import', '-'], { env, input }),
      `Added ${slowRows} plants.`,
    );
  });

  it('refuses a file that is none', async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
    const folder = tempFolder(t);
    const file = join(folder, 'plants.csv');
    const failure = async (path: string) => {
      const { status, stdout, stderr } = await run(['plants', 'import', path], { env });
      assert.deepEqual([status === 0, stdout], [false, '']);
      return stderr;
    };
    writeFileSync(file, 'nmae\nMonstera\n');
    assert.match(
      await failure(file),
      /^error: .*plants\.csv: The first line has unknown or repeated columns "nmae"\. It must have name/,
    );
    writeFileSync(file, Buffer.from('name\nMonst\xe9ra\n', 'latin1'));
    assert.match(await failure(file), /^error: .*The file is not text in UTF-8\./);
    assert.match(
      await failure(join(folder, 'none.csv')),
      /^error: Cannot read plants from .*none\.csv: there is no such file\.$/m,
    );
    assert.match(await failure(folder), /^error: Cannot read plants from .*: it is a folder\.$/m);
  });

  it('adds a row once for the same content or key, and lists what it leaves out', async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
    const file = join(tempFolder(t), 'plants.csv');
    const importing = (...args: string[]) => run(['plants', 'import', ...args], { env });
    writeFileSync(file, 'name,tag\na,\nb,\na,\n,\n,x\n');
    const first = await importing(file, '--concurrency', '1');
    assert.equal(first.stdout, 'Added 3 plants; 1 row was refused.\n');
    const [, key = ''] = /with --key (\S+) to add only/.exec(first.stderr) ?? [];
    assert.deepEqual(await importing(file, '--concurrency', '1'), {
      status: 1,
      stdout: 'Added 0 plants; 3 were already added; 1 row was refused.\n',
      stderr:
        [2, 3, 4].map((line) => `line ${line}: already added as plant ${line - 1}\n`).join('') +
        first.stderr.replace(/(?=^After)/m, `${addAgain}\n`),
    });

    // The wrong row is gone, another equal one is there, and the rows have moved.
    writeFileSync(file, 'name,tag\nc,\na,\na,\na,\nb,\n');
    assert.equal(
      (await importing(file, '--key', key)).stdout,
      'Added 2 plants; 3 were already added.\n',
    );
    assert.equal((await importing(file)).stdout, 'Added 5 plants.\n', 'a second delivery');

    const other = { ...env, PLANT_STORE_TOKEN: await app.token('bob') };
    const ofBob = await runOk(['plants', 'import', file], { env: other });
    assert.equal(ofBob, 'Added 5 plants.', 'each user has keys of their own');

    const json = '{"name":"a","tga":1}\n{"name":"a"}\n{"name":"a","id":90}\n';
    writeFileSync(file, json);
    const refused = await importing(file, '--key', 'json');
    assert.equal(refused.stdout, 'Added 2 plants; 1 row was refused.\n');
    assert.match(refused.stderr, /run the same command again to add only what is new\.\n$/);
    writeFileSync(file, '{"id":90,"tag":"","name":"a"}\n{"name":"a"}\n{"name":"a"}\n');
    const last = await importing(file, '--key', 'json');
    assert.equal(last.stdout, 'Added 1 plant; 2 were already added.\n');
  });

  it('adds every row of each delivery through a pipe', async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
    // The shell names the pipe of each of these commands /dev/fd/63.
    const under = ['bash', '-c', '"$@" <(printf "name\nIvy\n")', 'bash'];
    for (let delivery = 1; delivery <= 2; delivery++) {
      assert.equal(await runOk(['plants', 'import'], { env, under }), 'Added 1 plant.');
    }
    assert.deepEqual(await namesOf(app, token), ['Ivy', 'Ivy']);
  });

  it('ends if the service asks it to wait longer than it does', async (t) => {
    const app = await startApp(t, { limits: limitedTo({ requests: 6, windowSeconds: 36_000 }) });
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: await app.token('alice') };
    const file = join(tempFolder(t), 'plants.csv');
    writeFileSync(file, `name\n${'Ivy\n'.repeat(10)}`);
    const command = ['plants', 'import', file, '--concurrency', '1'];
    const { status, stdout, stderr } = await run(command, { env });
    assert.deepEqual([status, stdout], [1, 'Added 6 plants.\n']);
    assert.match(
      stderr,
      /^The import is not complete\. Run the same command again to continue\.\nerror: .*limit/,
    );
  });
});

it('400 rows are added once, although the command and the service are killed', (t) =>
  importInterrupted(t, {
    storage: 'SQLite',
    rows: 400,
    kills: { command: 2, service: 1 },
    seed: 1,
  }));
