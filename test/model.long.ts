import * as fc from 'fast-check';
import { agree, steps } from './model.ts';
import { startApp } from './support/app.ts';
import { rounds } from './support/rounds.ts';
import { it } from './support/storages.ts';

it('returns the response of the model for long histories', async (t) => {
  const app = await startApp(t);
  const agrees = fc.asyncProperty(steps(200), (all) => agree(app, all));
  await rounds(t, (_, seed) => fc.assert(agrees, { seed, numRuns: 10 }));
});
