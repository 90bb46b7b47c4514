import * as fc from 'fast-check';
import { agree, steps } from './model.ts';
import { startApp } from './support/app.ts';
import { it } from './support/storages.ts';

it('agrees with a plain model in memory on every answer to random requests', async (t) => {
  const app = await startApp(t);
  const agrees = fc.asyncProperty(steps(60), (all) => agree(app, all));
  await fc.assert(agrees, { numRuns: 100 }); // a failure prints its seed
});
