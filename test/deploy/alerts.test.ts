/**
 * The rules and the configuration for Prometheus of docs/how-to/monitor.md. prometheus.long.ts makes the alerts fire.
 */
import { spawnSync } from 'node:child_process';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Page } from '../../tools/markdown.ts';
import { without } from '../support/programs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

it(
  'each alert fires, clears, and does not fire while all is well',
  { skip: without('promtool') },
  () => {
    for (const args of [
      ['check', 'config', 'deploy/prometheus.yml'], // and the rules that it names
      ['test', 'rules', 'test/deploy/alerts.test.yml'],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', args, {
        cwd: root,
        encoding: 'utf8',
      });
      assert.equal(status, 0, stdout + stderr);
    }
  },
);

it('each alert leads to its section of the documentation', () => {
  const rules = readFileSync(`${root}deploy/alerts.yml`, 'utf8');
  const names = [...rules.matchAll(/alert: (\w+)/g)].map(([, name = '']) => name);
  const links = [...rules.matchAll(/runbook: (\S+)#(\S+)/g)].map(([, file, anchor]) => [
    file,
    anchor,
  ]);
  const page = 'docs/how-to/monitor.md';
  assert.deepEqual(
    links,
    names.map((name) => [page, name.toLowerCase()]),
  );
  const { anchors } = new Page(`${root}${page}`);
  for (const name of names) assert.ok(anchors.includes(name.toLowerCase()), name);
});
