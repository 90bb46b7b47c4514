import * as fc from 'fast-check';
import { agree, steps } from './model.ts';
import { startApp } from './support/app.ts';
import { it } from './support/storages.ts';

it('returns the response of a simple in-memory model for every random request', async (t) => {
  const app = await startApp(t);
  const agrees = fc.asyncProperty(steps(40), (all) => agree(app, all));
  await fc.assert(agrees, { numRuns: 15 }); // a failure prints its seed
});
