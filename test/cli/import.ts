/**
 * Imports a file by command, while the command and the service are killed and other clients add plants.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import { run, serve, start } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { seededRandom } from '../support/random.ts';

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

export interface Kills {
  command: number;
  service: number;
}

export async function importInterrupted(
  t: TestContext,
  { rows, kills, seed }: { rows: number; kills: Kills; seed: number },
): Promise<void> {
  const random = seededRandom(seed);
  const { folder, path, url } = databaseFile(t);
  const token = await fill(path, 0);
  const args = ['--database', url, '--log-level', 'silent'];
  let service = await serve(t, args);
  const { address } = service;
  const store = new PlantStore({ url: address, token });

  const names = Array.from({ length: rows }, (_, at) => `Plant ${at}, "${seed}"`);
  const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
  const isWrong = (at: number) => at % wrongEvery === seed % wrongEvery;
  const file = join(folder, 'plants.csv');
  const write = (rowOf: (name: string, at: number) => string) =>
    writeFileSync(file, ['Name,ID,Tag', ...names.map(rowOf), ''].join('\r\n'));
  write((name, at) =>
    isWrong(at)
      ? (wrongRows[Math.floor(at / wrongEvery) % wrongRows.length]?.(`Plant ${at}`) ?? '')
      : `${quoted(name)},,indoor`,
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
      service = await serve(t, [...args, '--port', new URL(address).port]);
    }
  }
  child.stdout.resume();
  const [status] = await once(child, 'close');
  assert.equal(status, 1, `seed ${seed}`);

  const resumed = await run(command, { env });
  done.abort();
  await adding;
  assert.equal(resumed.status, 1);
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
  const good = names.filter((_, at) => !isWrong(at)).toSorted();
  assert.deepEqual(await importedNames(store), good, `seed ${seed}`);

  write((name) => `${quoted(name)},,indoor`);
  const fixed = await run(['plants', 'import', file], { env });
  assert.deepEqual(fixed, {
    status: 0,
    stdout: `Added ${bad.length} plants; ${good.length} were already added.\n`,
    stderr: '',
  });
  assert.deepEqual(await importedNames(store), names.toSorted(), `seed ${seed}`);
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
