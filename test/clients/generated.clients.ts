/**
 * Clients that are generated from openapi.json, type-checked and used against the service. What they are
 * generated with is installed here by `npm run test:clients`, and not by `npm ci`.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startApp } from '../support/app.ts';
import type { ClientMaker, Outcome, Plant } from './client.ts';

const here = fileURLToPath(new URL('.', import.meta.url));

const generators = {
  'openapi-fetch': [
    'openapi-typescript',
    '../../openapi.json',
    '-o',
    '.cache/openapi-typescript.ts',
  ],
  'hey-api': ['openapi-ts', '--file', 'openapi-ts.config.js'],
};

before(() => {
  for (const [program = '', ...args] of Object.values(generators)) {
    run(`node_modules/.bin/${program}`, args);
  }
  run('../../node_modules/.bin/tsc', ['--project', '.']);
});

function run(program: string, args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: here, encoding: 'utf8' });
  assert.equal(status, 0, `${program} ${args.join(' ')}\n${stdout}${stderr}`);
}

for (const name of Object.keys(generators)) {
  test(`a client generated for ${name} calls the service as documented`, async (t) => {
    const { clientOf }: { clientOf: ClientMaker } = await import(`./adapters/${name}.ts`);
    const { address, token } = await startApp(t);
    const client = clientOf(address, await token('alice'));

    const cactus = { name: '🌵', tag: '👩‍🌾 home' };
    assert.deepEqual(await client.create(cactus), answer(201, cactus));
    const names = await client.create({ name: 'Monstera' }, ['id', 'tag', 'name']);
    assert.deepEqual(names, answer(201, { id: 2, tag: '', name: 'Monstera' }));
    const given = { name: '🌵'.repeat(200), tag: 'indoor', id: Number.MAX_SAFE_INTEGER };
    assert.deepEqual(await client.create(given, ['id']), answer(201, { id: given.id }));

    const { data: all = [] } = await client.list();
    assert.deepEqual(all, [
      cactus,
      { name: 'Monstera', tag: '' },
      { name: given.name, tag: 'indoor' },
    ]);
    const ids = async (query: object) => idsOf(await client.list({ ...query, fields: ['id'] }));
    assert.deepEqual(await ids({ limit: 2 }), [1, 2]);
    assert.deepEqual(await ids({ limit: 2, after: 2 }), [given.id]);
    assert.deepEqual(await ids({ tag: cactus.tag }), [1]);

    assert.deepEqual(
      await client.find(2, ['name', 'id']),
      answer(200, { name: 'Monstera', id: 2 }),
    );

    assert.equal((await client.delete(2)).status, 204);
    assert.deepEqual(await ids({}), [1, given.id]);

    assert.equal(kindOf(await client.find(2)), '404 plant-not-found');
    assert.equal(kindOf(await client.create({ ...cactus, id: 1 })), '409 id-taken');
    // The published pattern allows it, but the service refuses it.
    const refused = await client.create({ name: 'a\u0085' });
    assert.equal(kindOf(refused), '400 invalid-request');
    assert.deepEqual(
      refused.problem?.errors?.map(({ pointer }) => pointer),
      ['/name'],
    );
    const stranger = clientOf(address, 'nobody');
    assert.equal(kindOf(await stranger.list()), '401 invalid-token');
    assert.equal((await stranger.livez()).status, 200);
  });
}

function answer<Data>(status: number, data: Data): Outcome<Data> {
  return { status, data, problem: undefined };
}

function idsOf({ data }: Outcome<Plant[]>) {
  return data?.map(({ id }) => id);
}

function kindOf({ status, problem }: Outcome<unknown>): string {
  assert.equal(problem?.status, status);
  return `${status} ${String(problem?.type).replace('/problems/', '')}`;
}
