/**
 * A copy that is killed repeatedly and begun again.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileOf, isFile, openArchive } from '../../src/cli/database.ts';
import { start } from '../support/command.ts';
import { query } from '../support/postgres.ts';
import { emptyDatabase, type TestDatabase } from '../support/storages.ts';
import { digestIn, sourceOf } from './copy.ts';

/** The allowed difference for five times as many plants: garbage collection varies. */
const maxMoreMiB = 60;

it('copies 1,000,000 plants to PostgreSQL and back, killed ten times, in the memory for a fifth of them', async (t) => {
  const [plants, kills, aliveMs] = [1_000_000, 10, 1_000];
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

it('copies everything from SQLite to PostgreSQL and back, even if it is killed and begun again', async (t) => {
  const source = await sourceOf(t, 'SQLite', 20_000);
  const [middle, end] = [await emptyDatabase(t, 'PostgreSQL'), await emptyDatabase(t, 'SQLite')];
  const there = await copyKilled(source, middle, 1, 20);
  const back = await copyKilled(middle, end, 1, 20);
  assert.equal(back.digest, there.digest);
  assert.ok(there.kills + back.kills > 0);
});

interface Copied {
  /** Of both sides. */
  digest: string;
  /** The number of kills during the copy. */
  kills: number;
  /** The peak memory of the last run. */
  peakMiB: number;
}

/** Kills the copy `kills` times, which leaves an empty database, and asserts that it then succeeds. */
async function copyKilled(
  from: TestDatabase,
  to: TestDatabase,
  kills: number,
  aliveMs: number,
): Promise<Copied> {
  const args = ['copy', '--from', from.url, '--to', to.url];
  for (let killed = 0; killed < kills; killed++) {
    const child = start(args);
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (printed += String(text)));
    const ended = new Promise((resolve) => child.once('close', resolve));
    while (child.exitCode === null && !(await hasBegun(to))) await pause(10);
    await Promise.race([pause(aliveMs * (0.5 + Math.random())), ended]);
    child.kill('SIGKILL');
    await ended;
    if (printed !== '') return { digest: digestIn(printed), kills: killed, peakMiB: 0 }; // it was faster
    await using archive = await openArchive(to.url, { create: true });
    assert.equal(await archive.count('stores'), 0);
  }
  const child = start(args);
  const peakMiB = peakOf(child);
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (printed += String(text)));
  const status = await new Promise((resolve) => child.once('close', resolve));
  assert.equal(status, 0, printed);
  return { digest: digestIn(printed), kills, peakMiB: peakMiB() };
}

/** Whether a transaction has begun to write. */
async function hasBegun({ url }: TestDatabase): Promise<boolean> {
  if (isFile(url)) return existsSync(`${fileOf(url)}-journal`);
  const writing = `
    SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL`;
  return (await query(url, writing)).length > 0;
}

/** Measures the peak memory of a process. Call the returned function after its end. */
function peakOf({ pid }: ChildProcess): () => number {
  let kiB = 0;
  const timer = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      kiB = Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? kiB);
    } catch {
      // It has just ended.
    }
  }, 50);
  timer.unref();
  return () => {
    clearInterval(timer);
    return kiB / 1024;
  };
}
