/**
 * `npm run bench -- --write` takes hours on the machine whose figures are committed. Here it gets figures
 * of its own, and copies of the pages.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Measured } from '../../bench/load.ts';
import { writePages, type Report } from '../../bench/pages.ts';
import { tempFolder } from '../support/temp.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const summary = 'docs/explanation/performance.md';
const tables = 'bench/results/README.md';
const bench = fileURLToPath(new URL('../../bench/run.ts', import.meta.url));

const report: Report = {
  storage: 'sqlite',
  setting: 'on 2 cores',
  tables: '### 1,000 plants',
  plants: 1_000,
  measured: ['list-20', 'random-page', 'create-32', 'create-256', 'delete'].flatMap(measured),
};

/** As if the service handled twice the requests of the typical one, and half of each baseline. */
function measured(workload: string): Measured[] {
  const rates = { service: 20_000, bare: 40_000, 'synced log': 40_000, typical: 10_000 } as const;
  return (['service', 'bare', 'synced log', 'typical'] as const).map((system) => ({
    workload,
    system,
    requestsPerSecond: rates[system],
    ratioTo: {
      bare: rates[system] / rates.bare,
      'synced log': rates[system] / rates['synced log'],
      typical: rates[system] / rates.typical,
    },
    p50Ms: 1,
    p99Ms: 2,
    cpuUsPerRequest: 3,
    peakMiB: 100,
  }));
}

function pages(t: TestContext) {
  const folder = tempFolder(t);
  for (const page of [summary, tables]) cpSync(join(root, page), join(folder, page));
  return { folder, read: (page: string) => readFileSync(join(folder, page), 'utf8') };
}

test('replaces the figures in the pages with those of a run, and keeps the rest', async (t) => {
  const { folder, read } = pages(t);
  await writePages(folder, report);
  const page = read(summary);
  assert.match(page, /^# Performance\n/);
  assert.match(page, /^That is 2\.0 times as many as the same service on Express 5/m);
  assert.match(page, /^Reads reach 50 % of .*\. Writes reach 50 % of/m);
  assert.match(
    page,
    /^\| Create, 256 clients +\| +20,000 \| +1\.0 \| +2\.0 \| +2\.0 \| +0\.50 \|$/m,
  );
  assert.match(page, /\n## Measure it yourself\n/);
  assert.match(read(tables), /## SQLite\n\n.*\n\non 2 cores\n\n### 1,000 plants\n/);
  assert.match(read(tables), /\n## PostgreSQL\n/);
  const written = [summary, tables].map(read);
  await writePages(folder, report);
  assert.deepEqual([summary, tables].map(read), written, 'the same bytes for the same figures');
});

test('figures of PostgreSQL do not change the summary and tables of SQLite', async (t) => {
  const { folder, read } = pages(t);
  await writePages(folder, report);
  const before = read(summary);
  await writePages(folder, { ...report, storage: 'postgres', tables: '### 2,000 plants' });
  assert.equal(read(summary), before);
  assert.match(read(tables), /### 1,000 plants[^]*## PostgreSQL[^]*### 2,000 plants/);
});

test('rejects a page without its markers, and writes nothing', async (t) => {
  const { folder, read } = pages(t);
  const before = read(summary);
  cpSync(join(root, 'docs/reference/api.md'), join(folder, tables));
  await assert.rejects(writePages(folder, report), /has no comments "figures: sqlite"/);
  assert.equal(read(summary), before);
});

test('writes no figures of fewer than 3 rounds of 10 seconds', () => {
  for (const [rounds, seconds] of [
    [2, 10],
    [3, 9],
  ]) {
    // No plants are an error of their own, so that no bench starts if the pace is let through.
    const pace = ['--plants=0', `--rounds=${rounds}`, `--seconds=${seconds}`];
    const { status, stderr } = spawnSync(process.execPath, [bench, '--write', ...pace], {
      encoding: 'utf8',
    });
    assert.match(stderr, /^--write needs --rounds 3 and --seconds 10 or more\. Raise or omit them/);
    assert.equal(status, 1);
  }
});
