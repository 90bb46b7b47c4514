import { it } from 'node:test';
import { interrupted } from './import.ts';

for (let seed = 2; seed <= 21; seed++) {
  for (const role of ['manager', 'member'] as const) {
    it(`an interrupted import of a ${role} adds each row once, seed ${seed}`, (t) =>
      interrupted(t, role, seed));
  }
}
