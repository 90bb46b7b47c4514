import * as fc from 'fast-check';
import { agree, steps } from './model.ts';
import { startApp } from './support/app.ts';
import { rounds, sizeOf } from './support/rounds.ts';
import { it } from './support/storages.ts';

const size = sizeOf({ usual: 40, long: 200 });

it('returns the response of a simple in-memory model for every random request', async (t) => {
  const app = await startApp(t);
  const agrees = fc.asyncProperty(steps(size), (all) => agree(app, all));
  await rounds(t, (_, seed) => fc.assert(agrees, { seed, numRuns: 12 }));
});
