/**
 * What runs in the service besides our own code is written down: for people in docs/explanation/security.md, for
 * programs by `npm run sbom`.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import packageFile from '../package.json' with { type: 'json' };
import { Page, tableOf } from '../tools/markdown.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Installed {
  version: string;
  dev?: boolean;
  hasInstallScript?: boolean;
}

/** The packages that run in the service, by name and version. */
function installed(): Map<string, Installed> {
  const lock = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8'));
  const found = new Map<string, Installed>();
  for (const [path, one] of Object.entries<Installed>(lock.packages)) {
    const [, name] = /.*node_modules\/(.+)$/.exec(path) ?? [];
    if (name !== undefined && one.dev !== true) found.set(`${name}@${one.version}`, one);
  }
  return found;
}

test('docs/explanation/security.md has a reason for each production dependency, and for no other', () => {
  const rows = tableOf(
    new Page(`${root}docs/explanation/security.md`).section('Dependencies').tokens,
  );
  const wanted = Object.keys({ ...packageFile.dependencies, ...packageFile.peerDependencies });
  assert.deepEqual(rows.map(([dependency = '']) => dependency).toSorted(), wanted.toSorted());
  for (const [dependency = '', reason = ''] of rows) assert.ok(reason.length > 10, dependency);
});

test('no package that runs in the service has an install script', () => {
  assert.ok(installed().size > 0);
  for (const [name, { hasInstallScript }] of installed()) assert.ok(!hasInstallScript, name);
});

test('npm run sbom prints every package that runs in the service, and none of development', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['tools/sbom.ts'], { cwd: root });
  const { bomFormat, metadata, components } = JSON.parse(stdout);
  assert.equal(bomFormat, 'CycloneDX');
  const { name, version } = metadata.component;
  assert.deepEqual([name, version], [packageFile.name, packageFile.version]);
  const listed: string[] = components.map((one: Record<string, unknown>) => one['bom-ref']);
  assert.deepEqual(listed.toSorted(), [...installed().keys()].toSorted());
});
