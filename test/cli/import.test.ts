/**
 * `plants import` as a process.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it, type TestContext } from 'node:test';
import { limitedTo, override, startApp } from '../support/app.ts';
import { run, runOk, start } from '../support/command.ts';
import { tempFolder } from '../support/temp.ts';

const slowRows = 200;

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
          async create(caller, plant) {
            if (++created > slowRows / 2) {
              begin();
              await resumed;
            }
            return storage.plants.create(caller, plant);
          },
        },
      }),
  });
  const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: await app.token('alice') };
  const file = join(tempFolder(t), 'plants.csv');
  writeFileSync(file, `name\n${Array.from({ length: slowRows }, (_, at) => `${at}\n`).join('')}`);
  return { app, env, file, begun, resume };
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
      /^line 4: The quotes do not match\. .*\nline 3: "name" has a control character \(U\+009B\)\. .*\n$/,
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
    assert.equal(stderr, 'Added 1 plant; 1 row was refused.\n');
  });

  it('says that an import of standard input cannot continue', async (t) => {
    const { env, file, begun } = await startSlow(t);
    const input = readFileSync(file, 'utf8');
    const importing = run(['plants', 'import', '-'], { env, input });
    await begun;
    process.kill(process.pid, 'SIGINT');
    const { status, stderr } = await importing;
    assert.equal(status, 130);
    assert.match(stderr, /It cannot continue without --journal: the same command would add/);
  });

  it('refuses a file, a journal or an address that does not fit', async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
    const folder = tempFolder(t);
    const file = join(folder, 'plants.csv');
    const journal = `${file}.import-journal`;
    const failure = async (args: readonly string[], more: Record<string, string> = {}) => {
      const { status, stdout, stderr } = await run(['plants', 'import', ...args], {
        env: { ...env, ...more },
      });
      assert.deepEqual([status === 0, stdout], [false, '']);
      return stderr;
    };
    writeFileSync(file, 'nmae\nMonstera\n');
    assert.match(
      await failure([file]),
      /^error: .*plants\.csv: The first line has unknown or repeated columns "nmae"\. It must have name/,
    );
    assert.ok(!existsSync(journal));
    writeFileSync(file, Buffer.from('name\nMonst\xe9ra\n', 'latin1'));
    assert.match(await failure([file]), /^error: .*The file is not text in UTF-8\./);
    assert.match(
      await failure([join(folder, 'none.csv')]),
      /^error: Cannot read plants from .*none\.csv: there is no such file\.$/m,
    );
    assert.match(await failure([folder]), /^error: Cannot read plants from .*: it is a folder\.$/m);
    writeFileSync(file, 'name\nMonstera\n');
    await runOk(['plants', 'import', file], { env });
    const other = { PLANT_STORE_TOKEN: await app.token('bob') };
    assert.match(
      await failure([file], other),
      /^error: .*import-journal is the journal of an import to user alice in store main at .*, not to user bob /,
    );
    assert.match(
      await failure([file, '--journal', join(folder, 'none', 'journal')]),
      /^error: The journal .*none.journal cannot be used: .* Choose another with --journal\.$/m,
    );
    assert.match(await failure([file, '--journal', file]), /^error: The journal .* cannot be used/);
    assert.equal(statSync(journal).mode & 0o777, 0o600);
    assert.equal(
      await runOk(['plants', 'import', file], { env }),
      'Added 0 plants; 1 was already added.',
    );
  });

  it('says that a journal is damaged, and adds nothing', async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
    const file = join(tempFolder(t), 'plants.csv');
    const path = `${file}.import-journal`;
    writeFileSync(file, 'name\nMonstera\nFicus\n');
    await runOk(['plants', 'import', file], { env });
    const before = (await app.call('GET', '/plants', { token })).text;
    const damages = [
      `UPDATE entries SET entry = '{"id":1,"add'`,
      "UPDATE entries SET entry = 'null'",
      `UPDATE entries SET entry = '{"id":"1","added":true}'`,
      'ALTER TABLE entries RENAME COLUMN entry TO other',
    ];
    for (const sql of damages) {
      const journal = new DatabaseSync(path);
      journal.exec(sql);
      journal.close();
      const { status, stdout, stderr } = await run(['plants', 'import', file], { env });
      assert.deepEqual([status, stdout], [1, '']);
      assert.match(
        stderr,
        /^error: The journal \S+ (?:is damaged|cannot be used: .*)\. .* with --journal\.\n$/,
      );
    }
    assert.equal((await app.call('GET', '/plants', { token })).text, before);
  });

  it('ends if the service asks it to wait longer than it does', async (t) => {
    const app = await startApp(t, { limits: limitedTo({ requests: 6, windowSeconds: 36_000 }) });
    const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: await app.token('alice') };
    const file = join(tempFolder(t), 'plants.csv');
    writeFileSync(file, `name\n${'Ivy\n'.repeat(10)}`);
    const { status, stdout, stderr } = await run(['plants', 'import', file], { env });
    assert.deepEqual([status, stdout], [1, 'Added 1 plant.\n']);
    assert.match(
      stderr,
      /^The import is not complete\. Run the same command again to continue\.\nerror: .*limit/,
    );
  });

  it('stops at a signal, and at another import with the same journal', async (t) => {
    const { app, env, file, begun, resume } = await startSlow(t);
    const child = start(['plants', 'import', file], { env });
    const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => {
      let text = '';
      stream.setEncoding('utf8').on('data', (chunk) => (text += String(chunk)));
      return () => text;
    });
    await begun;
    const second = await run(['plants', 'import', file], { env });
    assert.match(
      second.stderr,
      /^error: Another import uses .*import-journal\. Wait until it ends\.$/m,
    );
    child.kill('SIGINT');
    assert.deepEqual(await once(child, 'close'), [130, null]);
    assert.match(stdout?.() ?? '', /^Added \d+ plants?\.\n$/);
    assert.equal(
      stderr?.(),
      'The import is not complete. Run the same command again to continue.\n',
    );
    resume();
    await runOk(['plants', 'import', file], { env });
    const { text } = await app.call('GET', '/plants', { token: env.PLANT_STORE_TOKEN });
    const names: { name: string }[] = JSON.parse(text);
    assert.equal(new Set(names.map(({ name }) => name)).size, slowRows);
    assert.equal(names.length, slowRows);
  });
});
