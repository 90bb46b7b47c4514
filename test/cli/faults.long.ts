/**
 * Faults that take their time.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { call } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';

const hangSeconds = 30;

it('answers that an outcome is unknown where the disk hangs, and reads meanwhile', async (t) => {
  if (spawnSync('strace', ['-V']).status !== 0) return t.skip('strace is not installed');
  const { url } = databaseFile(t);
  const database = ['--database', url];
  const token = await runOk(['token', 'create', 'alice', ...database]);
  const hanging = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'];
  const inject = ['-e', `inject=fsync,fdatasync:delay_enter=${hangSeconds}s:when=2`];
  const service = await serve(t, database, { under: [...hanging, ...inject] });
  const { address } = service;
  const create = (name: string) => call(`${address}/plants`, 'POST', { token, json: { name } });

  const answers = [];
  for (const name of ['a', 'b', 'c']) {
    const creating = create(name);
    const list = await call(`${address}/plants`, 'GET', { token });
    assert.equal(list.status, 200, 'reads go on');
    answers.push(await creating);
  }
  const [unknown, ...others] = answers.toSorted((one, other) => other.status - one.status);
  assert.equal(unknown?.status, 503);
  assert.match(unknown?.text ?? '', /outcome-unknown/);
  for (const { status } of others) assert.match(String(status), /^(201|503)$/);

  // Once the disk goes on, so does the service, and what was acknowledged is there.
  const last = await create('last');
  assert.equal(last.status, 201, last.text);
  const { json } = await call(`${address}/plants`, 'GET', { token });
  const names = (json as { name: string }[]).map(({ name }) => name);
  const acknowledged = answers.filter(({ status }) => status === 201).map((one) => one.json);
  for (const plant of [...acknowledged, last.json]) {
    assert.ok(names.includes((plant as { name: string }).name));
  }
  assert.equal(await service.stop(), 0);
});

for (const workers of [1, 2]) {
  it(`ends within a bound if the disk hangs, with ${workers} workers`, async (t) => {
    const { folder, path, url } = databaseFile(t);
    const library = join(folder, 'hanging-sync.so');
    const source = fileURLToPath(new URL('../support/hanging-sync.c', import.meta.url));
    const compiled = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source]);
    if (compiled.status !== 0)
      return t.skip('cc, which compiles what makes a sync hang, is missing');
    const token = await fill(path, 0);
    const hang = join(folder, 'hang');
    const options = { env: { LD_PRELOAD: library, HANG_WHILE: hang } };
    const service = await serve(t, ['--database', url, '--workers', String(workers)], options);
    const create = (name: string) =>
      call(`${service.address}/plants`, 'POST', { token, json: { name } });
    assert.equal((await create('before')).status, 201);

    writeFileSync(hang, '');
    const lost = create('lost').catch(() => undefined);
    const list = await call(`${service.address}/plants`, 'GET', { token });
    assert.equal(list.text, '[{"name":"before","tag":""}]');
    const signalledMs = performance.now();
    const status = await service.stop();
    const tookMs = performance.now() - signalledMs;
    assert.equal((await lost)?.status, undefined);
    assert.ok(tookMs > 10_000 && tookMs < 20_000, `it took ${tookMs} ms`);
    assert.deepEqual(
      [status, service.child.signalCode],
      workers === 1 ? [null, 'SIGKILL'] : [1, null],
    );
    assert.match(service.log(), /"level":50.*"msg":"not stopped in time"/);
    rmSync(hang);
    assert.ok(soundIds(path).includes(1));
  });
}
