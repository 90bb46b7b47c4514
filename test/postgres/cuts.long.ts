import { it } from 'node:test';
import { rounds } from '../support/rounds.ts';
import { survivesCuts } from './cuts.ts';

it('PostgreSQL: every response is correct while the network cuts hundreds of connections', (t) =>
  rounds(t, async (inner) => {
    inner.diagnostic(JSON.stringify(await survivesCuts(inner, 300)));
  }));
