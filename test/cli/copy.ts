/**
 * A copy that is killed repeatedly and resumed.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openArchive } from '../../src/cli/database.ts';
import { storeOf } from '../../src/access/token.ts';
import { run, start } from '../support/command.ts';
import { emptyDatabase, type StorageName, type TestDatabase } from '../support/storages.ts';
import { addToken } from '../support/app.ts';
import { idOf } from '../support/tokens.ts';

export interface Copied {
  /** Of both sides. */
  digest: string;
  /** The number of kills during the copy. */
  kills: number;
  /** The peak memory of the last run. */
  peakMiB: number;
}

/**
 * A database with many plants, some users and stores, ended tokens, and text of all kinds. `token` is one of alice.
 */
export async function sourceOf(
  t: TestContext,
  storage: StorageName,
  plants: number,
): Promise<TestDatabase & { token: string }> {
  const database = await emptyDatabase(t, storage);
  await using opened = await database.open();
  const token = await addToken(opened, 'alice');
  const plant = (at: number) => ({
    id: at * 3 + 1,
    tag: `bed ${at % 7}`,
    name: `Plant é 𝒳 "${at}" \\`,
  });
  await database.fill(Array.from({ length: plants }, (_, at) => plant(at)));
  await addToken(opened, 'bob', { role: 'manager', scopes: ['plants:read'], expiresAtMs: 5 });
  await addToken(opened, 'alice', { store: 'elsewhere' });
  await addToken(opened, 'zoë', { store: 'élan' });
  const store = storeOf(token);
  for (const [at, owner] of ['bob', 'alice'].entries()) {
    for (let other = 0; other < 20; other++) {
      const access = other % 2 === 0 ? 'read' : 'write';
      await opened.shares.set(
        store,
        { owner, user: `friend é 𝒳 ${other}`, access },
        at * 5 - other,
      );
    }
  }
  await opened.shares.set(store, { owner: 'alice', user: 'carol', access: 'read' }, 0);
  const revoked = await addToken(opened, 'alice');
  await opened.identity.revokeToken(idOf(revoked), 7);
  return { ...database, token };
}

/** Kills the copy `kills` times, resumes it, and asserts that it succeeds. */
export async function copyKilled(
  from: TestDatabase,
  to: TestDatabase,
  kills: number,
  aliveMs: number,
): Promise<Copied> {
  const args = ['copy', '--from', from.url, '--to', to.url];
  let resume: string[] = [];
  for (let killed = 0; killed < kills;) {
    const child = start([...args, ...resume]);
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (printed += String(text)));
    const ended = new Promise((resolve) => child.once('close', resolve));
    while (child.exitCode === null && !(await hasBegun(to.url))) await pause(10);
    await Promise.race([pause(aliveMs * (0.5 + Math.random())), ended]);
    child.kill('SIGKILL');
    await ended;
    if (printed !== '') return { digest: digestIn(printed), kills: killed, peakMiB: 0 }; // it was faster
    killed++;
    if (resume.length > 0) continue;
    const again = await run(args);
    assert.match(again.stderr, /already contains part of this copy\. Continue with --resume\./);
    const served = await run(['serve', '--port', '0', '--database', to.url]);
    assert.equal(served.status, 1);
    assert.match(served.stderr, /is an incomplete copy\. Finish it with/);
    resume = ['--resume'];
  }
  const child = start([...args, ...resume]);
  const peakMiB = peakOf(child);
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (printed += String(text)));
  const status = await new Promise((resolve) => child.once('close', resolve));
  assert.equal(status, 0, printed);
  return { digest: digestIn(printed), kills, peakMiB: peakMiB() };
}

async function hasBegun(url: string): Promise<boolean> {
  try {
    await using archive = await openArchive(url, { create: false });
    return (await archive.unfinishedSource()) !== undefined;
  } catch {
    return false; // the file does not exist, or has no tables yet
  }
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

/** Asserts that the copy succeeded. */
export function digestIn(printed: string): string {
  const [, digest = ''] = /SHA-256 of both: ([0-9a-f]{64})$/m.exec(printed) ?? [];
  assert.notEqual(digest, '', printed);
  return digest;
}
