import { it } from 'node:test';
import { survivesCuts } from './cuts.ts';

it('PostgreSQL: a network that cuts 1,000 connections makes no answer false', async (t) => {
  t.diagnostic(JSON.stringify(await survivesCuts(t, 1_000)));
});
