/**
 * The fuzzer on two services, each a process of its own: one on SQLite, one on PostgreSQL.
 */
import type { TestContext } from 'node:test';
import * as fc from 'fast-check';
import { serve } from '../../support/command.ts';
import { openArchive } from '../../../src/cli/database.ts';
import { storageNames, testDatabase } from '../../support/storages.ts';
import { endure, mangled } from './bytes.ts';
import { groups } from './requests.ts';
import { withstand, type Counts, type Target } from './run.ts';

export interface Extent {
  /** How many requests, at least, go to all services together. */
  requests: number;
  /** How many clients send them at once. */
  lanes: number;
  seed: number;
}

const each = 60;
/** A failure is made smaller for so long and no longer. */
const bounded = { interruptAfterTimeLimit: 60_000, markInterruptAsFailure: true };

/** Random requests, sound and nearly so, in lanes that each have stores of their own. */
export function fuzz(t: TestContext, extent: Extent): Promise<void> {
  return run(t, extent, groups(each), withstand);
}

/** Random bytes that were sound requests once. */
export function fuzzBytes(t: TestContext, extent: Extent): Promise<void> {
  return run(t, extent, mangled(each), endure);
}

async function run<T>(
  t: TestContext,
  { requests, lanes, seed }: Extent,
  arbitrary: fc.Arbitrary<T>,
  send: (targets: readonly Target[], all: T, counts: Counts) => Promise<void>,
): Promise<void> {
  const targets = await Promise.all(storageNames.map((name) => start(t, name)));
  const counts: Counts = {};
  const total = () => Object.values(counts).reduce((sum, count) => sum + count, 0);
  const property = fc.asyncProperty(arbitrary, (all) => send(targets, all, counts));
  const lane = async (first: number) => {
    // A seed for each turn, because fast-check takes the number of turns and not of requests.
    for (let turn = first; total() < requests; turn += lanes) {
      await fc.assert(property, { seed: seed + turn, numRuns: 1, ...bounded });
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, at) => lane(at)));
  t.diagnostic(`${total()} answers, none of 5xx, to seed ${seed}: ${JSON.stringify(counts)}`);
}

async function start(t: TestContext, name: (typeof storageNames)[number]): Promise<Target> {
  const database = await testDatabase(t, name);
  // Most requests have no valid token, on purpose.
  const settings = ['--auth-failure-limit', 'off'];
  const { address } = await serve(t, ['--database', database.url, ...settings]);
  const archive = await openArchive(database.url, { create: true });
  t.after(() => archive[Symbol.asyncDispose]());
  return { port: Number(new URL(address).port), archive };
}
