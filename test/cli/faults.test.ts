/**
 * What a real system does to a service: a full disk, a limit on a file, a disk that fails, a lock
 * of another process, a damaged file. No response may be a false success or a false failure.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { call, type Answer } from '../support/app.ts';
import { run, runOk, serve } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { diskFolder } from '../support/temp.ts';
import { without } from '../support/programs.ts';
import { until } from '../support/until.ts';

it(
  'returns 503 if the disk is full, keeps acknowledged changes, and resumes once there is room',
  { skip: without('mount') },
  async (t) => {
    let disk = '';
    t.after(() => spawnSync('umount', ['-l', disk])); // before the folder is removed
    disk = join(diskFolder(t), 'disk');
    mkdirSync(disk);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', disk]);
    if (mounted.status !== 0) return t.skip('a small disk cannot be mounted here: it takes root');
    const database = ['--database', `sqlite:${join(disk, 'plants.db')}`];
    const token = await runOk(['token', 'create', 'alice', '--scope', scopes.join(), ...database]);
    const filler = join(disk, 'filler');
    writeFileSync(filler, Buffer.alloc(10_000_000));
    const service = await serve(t, database);
    const { address } = service;
    const share = (at: number) =>
      call(`${address}/shares/friend%20${at}`, 'PUT', { token, json: { access: 'read' } });
    const countShares = async () => {
      const { json } = await call(`${address}/shares`, 'GET', { token });
      return (json as { given: unknown[] }).given.length;
    };

    const { acknowledged, refused } = await createUntilRefused(address, token);
    assertHonest(refused, 'storage-full');
    assert.deepEqual(await idsOf(address, token), acknowledged);
    const remove = (id: number | undefined) => call(`${address}/plants/${id}`, 'DELETE', { token });
    let removed = 0; // what is left can be room for some: a deletion writes fewer pages
    let answer = await remove(acknowledged[removed]);
    for (; answer.status === 204; answer = await remove(acknowledged[removed])) removed++;
    assertHonest(answer, 'storage-full');
    let shares = 0;
    for (answer = await share(shares); answer.status === 201; answer = await share(shares))
      shares++;
    assertHonest(answer, 'storage-full');
    assert.equal(await countShares(), shares);
    // Requests that change nothing succeed, but do not show that writes work.
    const repeat = () =>
      call(`${address}/plants/${acknowledged[removed]}`, 'PATCH', {
        token,
        json: { name: 'x'.repeat(200) },
      });
    assert.equal((await repeat()).status, 200);
    await until('it is not ready', async () => {
      await repeat(); // 503 if it is in one transaction with a write of the service
      return (await call(`${address}/readyz`, 'GET')).status === 503;
    });
    assert.doesNotMatch(service.log(), /disk has space again/);
    writeFileSync(filler, '');
    assert.equal((await share(shares++)).status, 201);
    assert.equal(await countShares(), shares);
    assert.equal((await remove(acknowledged[removed++])).status, 204);
    assert.deepEqual(await idsOf(address, token), acknowledged.slice(removed));

    await until('the end is logged', () => service.log().includes('"msg":"disk has space again"'));
    assert.equal((await call(`${address}/readyz`, 'GET')).status, 200);
    assert.equal(service.log().split('"msg":"disk full"').length, 2, 'one entry for all');
    assert.doesNotMatch(service.log(), /request failed/);

    assert.equal(await service.stop(), 0);
    assert.throws(() => writeFileSync(filler, Buffer.alloc(13_000_000)), { code: 'ENOSPC' });
    const { status, stderr } = await run(['migrate', ...database]);
    assert.equal(status, 1);
    assert.match(stderr, /^error: \S+ cannot be written: the disk is full\. Free some space/);
  },
);

it(
  'exits with its own status if a sync fails, and loses no acknowledged change',
  { skip: without('strace') },
  async (t) => {
    const path = join(diskFolder(t), 'plants.db');
    const database = ['--database', `sqlite:${path}`];
    const token = await runOk(['token', 'create', 'alice', ...database]);
    const service = await serve(t, database, { under: failingSync(8) });

    const { acknowledged, refused, refusedId } = await createUntilRefused(service.address, token);
    assertHonest(refused, 'outcome-unknown');
    assert.match(service.log(), /"kind":"outcome-unknown".*"msg":"request failed"/);
    assert.equal(await service.ended, 3);
    assert.match(service.log(), /"level":50.*"msg":"storage failed"/);
    assert.match(
      service.log(),
      /^error: The disk reported an error during a write\. .* Check the disk/m,
    );

    await runOk(['migrate', ...database]); // opens it as a service does
    const found = new Set(soundIds(path));
    found.delete(refusedId); // stored or not: its outcome was unknown
    assert.deepEqual([...found], acknowledged);
  },
);

export async function idsOf(address: string, token: string): Promise<number[]> {
  const { status, json } = await call(`${address}/plants?fields=id`, 'GET', { token });
  assert.equal(status, 200);
  return (json as { id: number }[]).map(({ id }) => id);
}

/** Creates plants until one is refused. */
export async function createUntilRefused(address: string, token: string) {
  const acknowledged: number[] = [];
  for (let id = 1; id <= 5_000; id++) {
    const json = { id, name: 'x'.repeat(200) };
    const answer: Answer = await call(`${address}/plants`, 'POST', { token, json });
    if (answer.status !== 201) return { acknowledged, refused: answer, refusedId: id };
    acknowledged.push(id);
  }
  throw new Error('nothing was refused');
}

export function assertHonest({ status, text, headers }: Answer, kind: string): void {
  assert.equal(status, 503, text);
  const [before, after, ...others] = text.split(`"/problems/${kind}"`);
  assert.ok(after !== undefined && others.length === 0, text);
  assert.match(headers.get('retry-after') ?? '', /^\d+$/);
  assert.doesNotMatch(`${before}${after}`, /sqlite|SQL|I\/O|\.db|\//i);
}

/** A command that fails the sync with the number `at` of each thread of a process. */
export function failingSync(at: number): string[] {
  const failing = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'];
  return [...failing, '-e', `inject=fsync,fdatasync:error=EIO:when=${at}`];
}
