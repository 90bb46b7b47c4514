import assert from 'node:assert/strict';
import { it } from 'node:test';
import { emptyDatabase } from '../support/storages.ts';
import { copyKilled, sourceOf } from './copy.ts';

const plants = 1_000_000;
const kills = 10;
const aliveMs = 1_000;
/** The allowed difference for five times as many plants: garbage collection varies. */
const maxMoreMiB = 60;

it('copies 1,000,000 plants to PostgreSQL and back, killed ten times, in the memory for a fifth of them', async (t) => {
  const few = await sourceOf(t, 'SQLite', plants / 5);
  const { peakMiB } = await copyKilled(few, await emptyDatabase(t, 'PostgreSQL'), 0, aliveMs);

  const source = await sourceOf(t, 'SQLite', plants);
  const [middle, end] = [await emptyDatabase(t, 'PostgreSQL'), await emptyDatabase(t, 'SQLite')];
  const there = await copyKilled(source, middle, kills / 2, aliveMs);
  const back = await copyKilled(middle, end, kills / 2, aliveMs);
  assert.equal(back.digest, there.digest);
  t.diagnostic(
    `peaks in MiB: ${[peakMiB, there.peakMiB, back.peakMiB].map(Math.round).join(', ')}`,
  );
  assert.equal(there.kills + back.kills, kills);
  for (const one of [there, back]) assert.ok(one.peakMiB < peakMiB + maxMoreMiB);
});

it('copies everything from SQLite to PostgreSQL and back, even if it is killed and resumed', async (t) => {
  const source = await sourceOf(t, 'SQLite', 20_000);
  const [middle, end] = [await emptyDatabase(t, 'PostgreSQL'), await emptyDatabase(t, 'SQLite')];
  const there = await copyKilled(source, middle, 1, 20);
  const back = await copyKilled(middle, end, 1, 20);
  assert.equal(back.digest, there.digest);
  assert.ok(there.kills + back.kills > 0);
});
