import { it } from 'node:test';
import { importInterrupted } from './import.ts';

for (let seed = 2; seed <= 7; seed++) {
  it(`10,000 rows are added once, although much is killed, seed ${seed}`, (t) =>
    importInterrupted(t, { rows: 10_000, kills: { command: 8, service: 4 }, seed }));
}
