import { it } from 'node:test';
import { rounds } from '../support/rounds.ts';
import { importInterrupted } from './import.ts';

it('300 rows are added once, although the command is killed', (t) =>
  importInterrupted(t, { rows: 300, kills: { command: 1, service: 0 }, seed: 1 }));

it('10,000 rows are added once, although the command and the service are killed often', (t) =>
  rounds(t, (inner, seed) =>
    importInterrupted(inner, { rows: 10_000, kills: { command: 8, service: 4 }, seed }),
  ));
