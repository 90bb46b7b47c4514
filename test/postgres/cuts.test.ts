import { it } from 'node:test';
import { survivesCuts } from './cuts.ts';

it('PostgreSQL: a network that cuts connections makes no answer false', async (t) => {
  await survivesCuts(t, 60);
});
