import assert from 'node:assert/strict';
import { it } from 'node:test';
import { tooManyWrites } from '../../src/problem.ts';
import { override, startApp } from '../support/app.ts';
import { run } from '../support/command.ts';

await import('./import.test.ts');

it('an import shows once why it waits, however long and for how many rows', async (t) => {
  const readyMs = performance.now() + 14_000;
  const app = await startApp(t, {
    wrap: (storage) =>
      override(storage, {
        plants: {
          async create(caller, plant) {
            if (performance.now() < readyMs) throw tooManyWrites();
            return storage.plants.create(caller, plant);
          },
        },
      }),
  });
  const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: await app.token('alice') };
  const input = 'name,id\nMonstera,1\nFicus,2\n';
  const { stdout, stderr } = await run(['plants', 'import', '-'], { env, input });
  assert.equal(stdout, 'Added 2 plants.\n');
  assert.match(
    stderr,
    /^Waiting for the service: Too many writes are pending, so nothing was changed\. .*\n$/,
  );
});
