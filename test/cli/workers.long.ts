import { it } from 'node:test';
import { killWorkers, start } from './workers.ts';

it('closes every connection of a killed worker that it has not answered, after many kills', async (t) => {
  await killWorkers(await start(t), 16);
});
