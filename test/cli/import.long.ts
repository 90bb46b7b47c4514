import assert from 'node:assert/strict';
import { it } from 'node:test';
import { tooManyWrites } from '../../src/problem.ts';
import { override, startApp } from '../support/app.ts';
import { run } from '../support/command.ts';
import { rounds } from '../support/rounds.ts';
import { storageNames } from '../support/storages.ts';
import { importInterrupted } from './import.ts';

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

it('2,000 rows are added once, although the command and the service are killed often', (t) =>
  rounds(t, async (inner, seed) => {
    for (const storage of storageNames) {
      await importInterrupted(inner, {
        storage,
        rows: 2_000,
        kills: { command: 8, service: 4 },
        seed,
      });
    }
  }));
