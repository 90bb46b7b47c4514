/**
 * `plants import` adds each row once, whatever happens. words.test.ts has what it prints.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  createWriteStream,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, it, type TestContext } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import { limitedTo, override, startApp } from '../support/app.ts';
import { run, runOk, serve, start } from '../support/command.ts';
import { seededRandom } from '../support/random.ts';
import { rounds, sizeOf } from '../support/rounds.ts';
import { spreadsheetPlants, spreadsheets } from '../support/spreadsheets.ts';
import { storageNames, storageOf, testDatabase, type StorageName } from '../support/storages.ts';
import { tempFolder } from '../support/temp.ts';

/** A service, and a file that alice imports. */
async function setUp(t: TestContext, options: Parameters<typeof startApp>[1] = {}) {
  const app = await startApp(t, options);
  const token = await app.token('alice');
  const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
  const file = join(tempFolder(t), 'plants.csv');
  return {
    app,
    file,
    env,
    importing: (args: readonly string[], input = '') =>
      run(['plants', 'import', ...args], { env, input }),
    count: async () => {
      const { json } = await app.call('GET', '/plants', { token });
      return (json as unknown[]).length; // a list is an array
    },
    remove: (id: number) => app.call('DELETE', `/plants/${id}`, { token }),
  };
}

const mergePatch = { 'content-type': 'application/merge-patch+json' };
const toUndo = 'To undo this import, run the same command with --undo.\n';
const addAgain = 'To add rows again that were already added, choose another --key.';

describe('plants import', { concurrency: 2 }, () => {
  it('adds a row once for the same content or key, and lists what it leaves out', async (t) => {
    const { app, env, file, importing } = await setUp(t);
    writeFileSync(file, 'name,tag\na,\nb,\na,\n,\n,x\n');
    const first = await importing([file, '--concurrency', '1']);
    assert.equal(first.stdout, 'Added 3 plants; 1 row was refused.\n');
    const [, key = ''] = /with --key (\S+) to add only/.exec(first.stderr) ?? [];
    const told = first.stderr.replace(toUndo, '');
    assert.match(told, /^Refused rows:\n {2}line 6: x\n {4}The name is empty\.\nAfter /);
    assert.deepEqual(await importing([file, '--concurrency', '1']), {
      status: 1,
      stdout: 'Added 0 plants; 3 were already added; 1 row was refused.\n',
      stderr:
        [2, 3, 4].map((line) => `line ${line}: already added as plant ${line - 1}\n`).join('') +
        told.replace(/(?=^After)/m, `${addAgain}\n`),
    });

    // The wrong row is gone, another equal one is there, and the rows have moved.
    writeFileSync(file, 'name,tag\nc,\na,\na,\na,\nb,\n');
    assert.equal(
      (await importing([file, '--key', key])).stdout,
      'Added 2 plants; 3 were already added.\n',
    );
    assert.equal((await importing([file])).stdout, 'Added 5 plants.\n', 'a second delivery');

    const other = { ...env, PLANT_STORE_TOKEN: await app.token('bob') };
    const ofBob = await runOk(['plants', 'import', file], { env: other });
    assert.equal(ofBob, 'Added 5 plants.', 'each user has keys of their own');

    const json = '{"name":"a","tga":1}\n{"name":"a"}\n{"name":"a","id":90}\n';
    writeFileSync(file, json);
    const refused = await importing([file, '--key', 'json']);
    assert.equal(refused.stdout, 'Added 2 plants; 1 row was refused.\n');
    assert.match(refused.stderr, /run the same command again to add only what is new\.\n$/);
    writeFileSync(file, '{"id":90,"tag":"","name":"a"}\n{"name":"a"}\n{"name":"a"}\n');
    const last = await importing([file, '--key', 'json']);
    assert.equal(last.stdout, 'Added 1 plant; 2 were already added.\n');
  });

  it('names the key with which an import of standard input continues', async (t) => {
    const rows = 200;
    const [begun, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    t.after(() => resumed.resolve()); // otherwise the service would wait for the rest
    let created = 0;
    const { importing, count } = await setUp(t, {
      wrap: (storage) =>
        override(storage, {
          plants: {
            async create(...args) {
              if (++created > rows / 2) {
                begun.resolve();
                await resumed.promise;
              }
              return storage.plants.create(...args);
            },
          },
        }),
    });
    const input = `name\n${Array.from({ length: rows }, (_, at) => `${at}\n`).join('')}`;
    const interrupted = importing(['-'], input);
    await begun.promise;
    process.kill(process.pid, 'SIGINT');
    const { status, stderr } = await interrupted;
    assert.equal(status, 130);
    const advice =
      /^The import is not complete\. Run the same command with --key (\S+) to continue\.\n$/;
    const [, key = ''] = advice.exec(stderr) ?? [];
    resumed.resolve();
    const { stdout } = await importing(['-', '--key', key], input);
    assert.match(stdout, /^Added \d+ plants; \d+ were already added\.\n$/);
    assert.equal(await count(), rows);
    assert.equal((await importing(['-'], input)).stdout, `Added ${rows} plants.\n`);
  });

  it('adds every row of each delivery through a pipe', async (t) => {
    const { importing, count, file } = await setUp(t);
    const pipe = `${file}.pipe`;
    assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
    for (let delivery = 1; delivery <= 2; delivery++) {
      createWriteStream(pipe).end('name\nIvy\n');
      assert.equal((await importing([pipe])).stdout, 'Added 1 plant.\n');
    }
    assert.equal(await count(), 2);
  });

  it('reads what spreadsheets save, and asks for what it cannot know', async (t) => {
    const { app, env, file, importing } = await setUp(t);
    for (const [what, { content, options = [], note }] of Object.entries(spreadsheets)) {
      const token = await app.token('alice', { store: what.replaceAll(' ', '-') });
      writeFileSync(file, content);
      const added = await run(['plants', 'import', file, ...options], {
        env: { ...env, PLANT_STORE_TOKEN: token },
        input: '',
      });
      assert.equal(added.stdout, 'Added 2 plants.\n', `${what}: ${added.stderr}`);
      assert.equal(added.stderr, (note === undefined ? '' : `${note}\n`) + toUndo, what);
      const { json } = await app.call('GET', '/plants', { token });
      const sorted = (json as { name: string }[]).toSorted((a, b) => (a.name < b.name ? -1 : 1));
      assert.deepEqual(sorted, spreadsheetPlants);
    }
    const refused: [string, string[], RegExp][] = [
      ['Bezeichnung;Gruppe\nMöhre;x\n', [], /columns are A: Bezeichnung, B: Gruppe\. Choose /],
      ['Name;Gruppe\nMöhre;x\n', ['--tag-column', 'Tag 2'], /There is no column "Tag 2"\. The /],
      ['PK\u0003\u0004', [], /save it as "CSV UTF-8"/],
      ['\0', [], /The file is not text\./],
    ];
    for (const [content, options, message] of refused) {
      writeFileSync(file, content);
      const { status, stderr } = await importing([file, ...options]);
      assert.equal(status, 1);
      assert.match(stderr, message);
    }
  });

  it('takes an export back that was edited, and undoes that as one', async (t) => {
    const { env, app, file, importing } = await setUp(t);
    const token = env.PLANT_STORE_TOKEN;
    const list = async () => (await app.call('GET', '/plants?fields=id,name,tag', { token })).json;
    for (const name of ['Ivy', 'Fern', 'Oak'])
      await app.call('POST', '/plants', { token, json: { name, tag: '=a' } });
    const before = await list();
    const { stdout: exported } = await run(['plants', 'list', '--csv'], { env });
    assert.ok(exported.startsWith('\u{feff}id,name,tag\n'), 'Excel needs the mark');
    writeFileSync(file, exported.replace('2,Fern,', '2,Bracken,').concat(',Elm,\n'));
    const untold = await importing([file]);
    assert.match(untold.stdout, /^Added 1 plant; 3 rows were refused\.\n$/);
    assert.match(untold.stderr, /^To change plants that have the id of a row, add --update\.$/m);
    await importing([file, '--undo']);
    const updated = await importing([file, '--update', '--key', 'other']);
    assert.equal(updated.stdout, 'Added 1 plant; updated 1; 2 were unchanged.\n');
    assert.equal(updated.stderr, toUndo);
    const undone = await importing([file, '--undo']);
    assert.deepEqual(undone, {
      status: 0,
      stdout: 'Plants whose import was undone: 2.\n',
      stderr: '',
    });
    assert.deepEqual(await list(), before);
    const twice = await importing([file, '--undo']);
    assert.match(twice.stderr, /\.undo has no import that can be undone\.\n$/);
  });

  it('undoes each run by itself, and adds again what was undone', async (t) => {
    const { env, app, file, importing, remove } = await setUp(t);
    const token = env.PLANT_STORE_TOKEN;
    const list = async () => (await app.call('GET', '/plants?fields=id,name', { token })).text;
    await app.call('POST', '/plants', { token, json: { id: 1, name: 'A' } });
    writeFileSync(file, 'id,name\n1,X\n');
    await importing([file, '--update']);
    const change = { token, json: { name: 'B' }, headers: mergePatch };
    await app.call('PATCH', '/plants/1', change);
    await importing([file, '--update']);
    const earlier = 'The file was imported before too. To undo that, run the same command again.\n';
    assert.deepEqual(await importing([file, '--undo']), {
      status: 0,
      stdout: 'Plants whose import was undone: 1.\n',
      stderr: earlier,
    });
    assert.equal(await list(), '[{"id":1,"name":"B"}]');
    assert.deepEqual(await importing([file, '--undo']), {
      status: 1,
      stdout: 'Plants whose import was undone: 0.\n',
      stderr: 'Plants that stay as they are, because they were changed since then: 1.\n',
    });

    writeFileSync(file, 'name\nFern\n');
    for (const id of [2, 3]) {
      assert.equal((await importing([file])).stdout, 'Added 1 plant.\n');
      assert.match((await importing([file])).stdout, /^Added 0 plants; 1 was already added/);
      assert.equal(await list(), `[{"id":1,"name":"B"},{"id":${id},"name":"Fern"}]`);
      if (id === 2) assert.equal((await importing([file, '--undo'])).status, 0);
    }
    // The record of the file lasts longer than the keys of the service.
    const schema = storageOf(t) === 'SQLite' ? '' : 'plant_store.';
    await app.database.run(`DELETE FROM ${schema}idempotency_keys`);
    assert.match((await importing([file])).stdout, /^Added 0 plants; 1 was already added/);
    await remove(3);
    assert.equal((await importing([file])).stdout, 'Added 1 plant.\n');

    const { text: others } = await app.call('GET', '/plants', { token });
    for (const options of [{ store: 'second' }, { role: 'manager' } as const]) {
      const stranger = { ...env, PLANT_STORE_TOKEN: await app.token('zoe', options) };
      const { status, stderr } = await run(['plants', 'import', file, '--undo'], { env: stranger });
      assert.equal(status, 1);
      assert.match(stderr, /by user alice of store main at http\S+\. To undo it, use a token of /);
    }
    assert.equal((await app.call('GET', '/plants', { token })).text, others);
  });

  it('reads a record that was cut, and refuses a damaged one and a link', async (t) => {
    const { file, importing, count } = await setUp(t);
    const recordFile = `${file}.undo`;
    writeFileSync(file, 'name\nFern\nRose\n');
    await importing([file]);
    appendFileSync(recordFile, '{"run":{"id":"a","b');
    writeFileSync(file, 'name\nOak\n');
    await importing([file]);
    const damaged = /Line 5 of .*\.undo is damaged\. Remove that line, or the file: /;
    assert.match((await importing([file, '--undo'])).stderr, damaged);
    assert.match((await importing([file])).stderr, damaged);
    const lines = readFileSync(recordFile, 'utf8').split('\n');
    writeFileSync(recordFile, lines.slice(0, 5).join('\n'));
    const undone = await importing([file, '--undo']);
    assert.equal(undone.stdout, 'Plants whose import was undone: 2.\n');
    assert.equal(await count(), 1);
    for (const [text, message] of [
      ['', /\.undo has no import that can be undone\./],
      ['{}\n', /Line 1 of .* is damaged\./],
    ] as const) {
      writeFileSync(recordFile, text);
      const { status, stderr } = await importing([file, '--undo']);
      assert.deepEqual([status, stderr.slice(0, 7)], [1, 'error: ']);
      assert.match(stderr, message);
    }

    const target = `${file}.target`;
    writeFileSync(target, '');
    rmSync(recordFile);
    symlinkSync(target, recordFile);
    const { stdout, stderr } = await importing([file, '--key', 'new']);
    assert.equal(stdout, 'Added 1 plant.\n');
    assert.match(
      stderr,
      /^The import cannot be undone\. Cannot write .*: it is a symbolic link\.\n$/,
    );
    assert.equal(readFileSync(target, 'utf8'), '');
    assert.equal((await importing(['-', '--undo'])).status, 2);
  });

  it('stops if the service asks it to wait for long, or at a quota, and continues when there is room', async (t) => {
    const limits = limitedTo({ requests: 3, windowSeconds: 36_000 });
    const limited = await setUp(t, { limits });
    const full = await setUp(t, { quotas: { perUser: 3, perStore: undefined } });
    assert.equal((await full.importing(['-'], 'name\nOak\n')).status, 0);
    for (const [{ importing, file }, why] of [
      [limited, /.*limit/],
      [full, /A user of this service can own at most 3 plants\. /],
    ] as const) {
      writeFileSync(file, `name\n${'Ivy\n'.repeat(3)}`);
      const { status, stdout, stderr } = await importing([file, '--concurrency', '1']);
      assert.deepEqual([status, stdout], [1, 'Added 2 plants.\n']);
      const [advice, error = ''] = stderr.replace(toUndo, '').split('\nerror: ');
      assert.equal(advice, 'The import is not complete. Run the same command again to continue.');
      assert.match(error, why);
    }
    await full.remove(1);
    assert.deepEqual(await full.importing([full.file]), {
      status: 0,
      stdout: 'Added 1 plant; 2 were already added.\n',
      stderr: `line 2: already added as plant 2\nline 3: already added as plant 3\n${addAgain}\n${toUndo}`,
    });
    assert.equal(await full.count(), 3);
  });
});

const { rows, kills, storages } = sizeOf<{
  /** An even number. */
  rows: number;
  kills: { command: number; service: number };
  storages: readonly StorageName[];
}>({
  usual: { rows: 400, kills: { command: 1, service: 1 }, storages: ['SQLite'] },
  long: { rows: 2_000, kills: { command: 8, service: 4 }, storages: storageNames },
});

it('rows are added once, although the command and the service are killed', (t) =>
  rounds(t, async (inner, seed) => {
    for (const storage of storages) await importInterrupted(inner, storage, seed);
  }));

/** A wrong row, and what it is after it was fixed. */
const wrongRows: ((name: string) => string)[] = [
  () => ',,indoor',
  (name) => `"${name}" x,,indoor`,
  (name) => `"${name},,indoor`,
  (name) => `${name},1.5,indoor`,
  (name) => `${name},,indoor,more`,
  (name) => `${name},,${'x'.repeat(101)}`,
  (name) => `"${name}\u0007",,indoor`,
];

const wrongEvery = 100;

/** Another client adds equal plants meanwhile. */
async function importInterrupted(
  t: TestContext,
  storage: StorageName,
  seed: number,
): Promise<void> {
  const random = seededRandom(seed);
  const { url } = await testDatabase(t, storage);
  const settings = { env: { PLANT_STORE_DATABASE: url, PLANT_STORE_LOG_LEVEL: 'silent' } };
  const token = await runOk(['token', 'create', 'alice', '--yes'], settings);
  let service = await serve(t, [], settings);
  const { address } = service;
  const store = new PlantStore({ url: address, token });

  // Each row has an equal one.
  const names = Array.from({ length: rows }, (_, at) => `Plant ${at % (rows / 2)}, "${seed}"`);
  const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
  const isWrong = (at: number) => at % wrongEvery === seed % wrongEvery;
  // The service assigns ids above the largest one, so that other clients take none of these.
  await store.create({ name: 'last', tag: 'other', id: 10 * rows });
  const ownId = (at: number) => (at % 10 === (seed + 5) % 10 ? `${at + 1}` : '');
  const good = (name: string, at: number) => `${quoted(name)},${ownId(at)},indoor`;
  const file = join(tempFolder(t), 'plants.csv');
  const write = (rowOf: (name: string, at: number) => string) =>
    writeFileSync(file, ['Name,ID,Tag', ...names.map(rowOf), ''].join('\r\n'));
  write((name, at) =>
    isWrong(at)
      ? (wrongRows[Math.floor(at / wrongEvery) % wrongRows.length]?.(`Plant ${at}`) ?? '')
      : good(name, at),
  );
  const bad = names.keys().filter(isWrong).toArray();

  const env = { PLANT_STORE_URL: address, PLANT_STORE_TOKEN: token };
  const command = ['plants', 'import', file, '--json'];
  const done = new AbortController();
  let others = 0;
  const adding = (async () => {
    while (!done.signal.aborted && others < rows) {
      await store.create({ name: names[others % rows] ?? '', tag: 'other' }).catch(() => {});
      others++;
    }
  })();

  // Each kill is at a random number of rows from the start of that run.
  const victims = [
    ...Array.from({ length: kills.command }, () => 'command'),
    ...Array.from({ length: kills.service }, () => 'service'),
  ].toSorted(() => random() - 0.5);
  let child = start(command, { env });
  for (const victim of victims) {
    const lines = createInterface({ input: child.stdout });
    await outcomes(lines, Math.floor((random() * rows) / (victims.length + 1)));
    if (victim === 'command') {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
      child = start(command, { env });
    } else {
      lines.close();
      child.stdout.resume();
      await service.stop('SIGKILL');
      service = await serve(t, ['--port', new URL(address).port], settings);
    }
  }
  child.stdout.resume();
  const [status] = await once(child, 'close');
  assert.equal(status, 1, `seed ${seed}`);

  const resumed = await run(command, { env });
  done.abort();
  await adding;
  assert.equal(resumed.status, 1);
  const before = rows - bad.length;
  const [summary, how = ''] = resumed.stderr.split('\n');
  assert.equal(
    summary,
    `Added 0 plants; ${before} were already added; ${bad.length} rows were refused.`,
    `seed ${seed}`,
  );
  const refused = resumed.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter((outcome) => outcome.status === 'refused');
  assert.deepEqual(
    refused.map(({ line }) => line).toSorted((one, other) => one - other),
    bad.map((at) => at + 2),
    `every bad row is named, seed ${seed}`,
  );
  assert.ok(refused.every(({ reason }) => reason.length > 10));
  const goodNames = names.filter((_, at) => !isWrong(at)).toSorted();
  assert.deepEqual(await importedNames(store), goodNames, `seed ${seed}`);

  write(good);
  const [, key = ''] = /--key (\S+)/.exec(how) ?? [];
  const fixed = await runOk(['plants', 'import', file, '--key', key], { env });
  assert.equal(fixed, `Added ${bad.length} plants; ${before} were already added.`);
  assert.deepEqual(await importedNames(store), names.toSorted(), `seed ${seed}`);
  for await (const { id, name } of store.list({ tag: 'indoor', fields: ['id', 'name'] })) {
    if (id <= rows) assert.equal(name, names[id - 1]);
  }
}

/** Resolves after this many outcomes, or at the end. */
async function outcomes(lines: AsyncIterable<string>, count: number): Promise<void> {
  let left = count;
  for await (const _ of lines) if (left-- <= 0) return;
}

async function importedNames(store: PlantStore): Promise<string[]> {
  const plants = await Array.fromAsync(store.list({ tag: 'indoor' }));
  return plants.map(({ name }) => name).toSorted();
}
