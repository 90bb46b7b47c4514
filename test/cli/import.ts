/**
 * Imports a file by command, while the command and the service are killed and another client adds equal plants.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import { run, runOk, serve, start } from '../support/command.ts';
import { seededRandom } from '../support/random.ts';
import { testDatabase, type StorageName } from '../support/storages.ts';
import { tempFolder } from '../support/temp.ts';

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

interface ImportCase {
  storage: StorageName;
  /** An even number. */
  rows: number;
  kills: { command: number; service: number };
  seed: number;
}

export async function importInterrupted(
  t: TestContext,
  { storage, rows, kills, seed }: ImportCase,
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
