/**
 * Faults that last long, and more kinds of them.
 */
import assert from 'node:assert/strict';
import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { call, type Answer } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { without } from '../support/programs.ts';
import { parted, startService } from '../support/service.ts';
import { diskFolder, tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { assertHonest, createUntilRefused, failingSync, idsOf } from './faults.test.ts';

const blockBytes = 512; // what `ulimit -f` of a POSIX shell counts in

/** A service on a disk whose syncs hang while the file `hang` exists. */
async function serveOnHangingDisk(t: TestContext, ...args: readonly string[]) {
  const folder = tempFolder(t);
  const library = join(folder, 'hanging-sync.so');
  const source = fileURLToPath(new URL('../support/hanging-sync.c', import.meta.url));
  const compiled = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source]);
  assert.equal(compiled.status, 0, String(compiled.stderr));
  const hang = join(folder, 'hang');
  const env = { LD_PRELOAD: library, HANG_WHILE: hang };
  const { service, path, token } = await startService(t, { args, env });
  const create = (name: string) =>
    call(`${service.address}/plants`, 'POST', { token, json: { name } });
  const list = () => call(`${service.address}/plants`, 'GET', { token });
  return { service, path, hang, create, list };
}

describe('serve', { concurrency: 3 }, () => {
  const skip = without('cc');

  it(
    'reports an unknown outcome if the disk hangs, and serves reads meanwhile',
    { skip },
    async (t) => {
      const { service, hang, create, list } = await serveOnHangingDisk(t);
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
      assert.deepEqual([status, service.child.signalCode], [null, 'SIGKILL']);
      assert.match(service.log(), /"level":50.*"msg":"shutdown timed out"/);
      rmSync(hang);
      assert.ok(soundIds(path).includes(1));
    });
  }

  it('reports an unknown outcome if a commit cannot be written, and keeps serving', async (t) => {
    const path = join(diskFolder(t), 'plants.db');
    const database = ['--database', `sqlite:${path}`];
    const token = await runOk(['token', 'create', 'alice', ...database]);
    const limit = Math.ceil((statSync(path).size + 2_000_000) / blockBytes);
    const limited = ['sh', '-c', `trap '' XFSZ; ulimit -f ${limit}; exec "$0" "$@"`];
    const service = await serve(t, [...database, '--log-level', 'silent'], { under: limited });

    const { acknowledged, refused } = await createUntilRefused(service.address, token);
    assertHonest(refused, 'outcome-unknown');
    assert.ok(acknowledged.length > 50);
    assert.deepEqual(await idsOf(service.address, token), acknowledged);
    assert.equal(await service.stop(), 0);
    const again = await serve(t, database);
    assert.deepEqual(await idsOf(again.address, token), acknowledged);
  });

  it(
    'refuses every write after a failed sync, and serves reads until it exits',
    { skip: without('strace') },
    async (t) => {
      const started = await startService(t, { under: failingSync(1) });
      const { service, token, open, request } = started;
      // Open requests keep the service from ending: each is sent to its end later.
      const [writer, reader] = [open(), open()];
      const [head, body] = parted(request('POST /plants', { body: '{"name":"late"}' }));
      const list = request('GET /plants');
      writer.write(head);
      reader.write(list.slice(0, -2));

      const json = { name: 'a' };
      const first = await call(`${service.address}/plants`, 'POST', { token, json });
      assertHonest(first, 'outcome-unknown');
      await until('it is stopping', () => service.log().includes('"stopping"'));
      writer.write(body);
      reader.write('\r\n');
      const [refused, listed] = [await writer.answer(), await reader.answer()];
      assert.equal(refused?.status, 503);
      assert.match(refused?.body ?? '', /storage-unavailable.*nothing was changed/);
      assert.deepEqual([listed?.status, listed?.body], [200, '[]']);
      assert.equal(await service.ended, 3);
    },
  );

  it(
    'reports that nothing was changed if the writer thread cannot start',
    { skip: without('prlimit') },
    async (t) => {
      const { path } = databaseFile(t);
      const program = fileURLToPath(new URL('../support/lazy-writer.ts', import.meta.url));
      const child = fork(program, [path, await fill(path, 0)]);
      t.after(() => child.kill());
      const answer = async () => (await once(child, 'message'))[0] as string; // as it sends it
      const create = () => {
        child.send('create');
        return answer();
      };
      const limitFiles = (count: number) =>
        spawnSync('prlimit', ['--pid', String(child.pid), `--nofile=${count}:`]);

      assert.equal(await answer(), 'ready');
      limitFiles(3); // no further file can be opened
      assert.equal(await create(), 'storage-unavailable');
      limitFiles(1_024);
      assert.equal(await create(), 'stored');
      assert.deepEqual(soundIds(path), [1]);
    },
  );

  it('returns 503 if another process locks the database for too long, and recovers', async (t) => {
    const path = join(diskFolder(t), 'plants.db');
    const database = ['--database', `sqlite:${path}`];
    const token = await runOk(['token', 'create', 'alice', ...database]);
    const { address } = await serve(t, [...database, '--log-level', 'silent']);
    const create = () => call(`${address}/plants`, 'POST', { token, json: { name: 'a' } });
    assert.equal((await create()).status, 201);
    const other = new DatabaseSync(path);
    t.after(() => other.close());
    other.exec('BEGIN IMMEDIATE');

    const sentMs = performance.now();
    let waiting = 8;
    const refused: Promise<Answer>[] = [];
    while (refused.length < waiting) {
      refused.push(create().finally(() => waiting--)); // behind those that wait for the lock already
      assert.equal((await call(`${address}/livez`, 'GET')).status, 200);
    }
    assert.equal(waiting, 8, 'no other request waits for the lock');
    for (const answer of await Promise.all(refused)) {
      assertHonest(answer, 'storage-unavailable');
    }
    // A request that waited in the queue does not wait again for the lock.
    const waitedMs = performance.now() - sentMs;
    assert.ok(waitedMs > 4_900 && waitedMs < 7_500, `they waited for ${waitedMs} ms`);
    assert.equal(
      (await call(`${address}/plants`, 'GET', { token })).text,
      '[{"name":"a","tag":""}]',
    );
    other.exec('ROLLBACK');
    assert.equal((await create()).status, 201);
  });
});
