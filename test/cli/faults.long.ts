/**
 * Faults that last long.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { without } from '../support/programs.ts';

/** A service on a disk whose syncs hang while the file `hang` exists. */
async function serveOnHangingDisk(t: TestContext, ...args: readonly string[]) {
  const { folder, path, url } = databaseFile(t);
  const library = join(folder, 'hanging-sync.so');
  const source = fileURLToPath(new URL('../support/hanging-sync.c', import.meta.url));
  const compiled = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source]);
  assert.equal(compiled.status, 0, String(compiled.stderr));
  const token = await fill(path, 0);
  const hang = join(folder, 'hang');
  const env = { LD_PRELOAD: library, HANG_WHILE: hang };
  const service = await serve(t, ['--database', url, ...args], { env });
  const create = (name: string) =>
    call(`${service.address}/plants`, 'POST', { token, json: { name } });
  const list = () => call(`${service.address}/plants`, 'GET', { token });
  return { service, path, hang, create, list };
}

const skip = without('cc');

it(
  'reports an unknown outcome if the disk hangs, and serves reads meanwhile',
  { skip },
  async (t) => {
    const started = await serveOnHangingDisk(t);
    const { service, hang, create, list } = started;
    writeFileSync(hang, '');
    const creating = create('a');
    assert.equal((await list()).status, 200, 'reads succeed');
    const unknown = await creating;
    assert.equal(unknown.status, 503);
    assert.match(unknown.text, /outcome-unknown/);
    const waiting = create('b');
    assert.equal((await list()).status, 200);
    rmSync(hang);

    // Once the disk responds, the service resumes, with every acknowledged change.
    assert.equal((await waiting).status, 201);
    assert.equal((await create('c')).status, 201);
    const names = ((await list()).json as { name: string }[]).map(({ name }) => name);
    assert.deepEqual(names.slice(-2), ['b', 'c']);
    assert.equal(await service.stop(), 0);
  },
);

for (const workers of [1, 2]) {
  it(`exits in time if the disk hangs, with ${workers} workers`, { skip }, async (t) => {
    const started = await serveOnHangingDisk(t, '--workers', String(workers));
    const { service, path, hang, create, list } = started;
    assert.equal((await create('before')).status, 201);

    writeFileSync(hang, '');
    const lost = create('lost').catch(() => undefined);
    assert.equal((await list()).text, '[{"name":"before","tag":""}]');
    const signalledMs = performance.now();
    const status = await service.stop();
    const tookMs = performance.now() - signalledMs;
    assert.equal((await lost)?.status, undefined);
    assert.ok(tookMs > 10_000 && tookMs < 20_000, `it took ${tookMs} ms`);
    assert.deepEqual(
      [status, service.child.signalCode],
      workers === 1 ? [null, 'SIGKILL'] : [1, null],
    );
    assert.match(service.log(), /"level":50.*"msg":"shutdown timed out"/);
    rmSync(hang);
    assert.ok(soundIds(path).includes(1));
  });
}
