import { it } from 'node:test';
import { survivesCuts } from './cuts.ts';

it('PostgreSQL: every response is correct while the network cuts 1,000 connections', async (t) => {
  t.diagnostic(JSON.stringify(await survivesCuts(t, 1_000)));
});
