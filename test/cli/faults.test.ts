/**
 * What a real system does to a service: a full disk, a limit on a file, a disk that fails, a lock
 * that somebody holds, a file that is damaged. No answer may be a false success or a false failure.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { call, type Answer } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { tempFolder } from '../support/temp.ts';

const blockBytes = 512; // what `ulimit -f` of a POSIX shell counts in

async function idsOf(address: string, token: string): Promise<number[]> {
  const { status, json } = await call(`${address}/plants?fields=id`, 'GET', { token });
  assert.equal(status, 200);
  return (json as { id: number }[]).map(({ id }) => id);
}

/** Creates plants until one is refused. */
async function createUntilRefused(address: string, token: string) {
  const acknowledged: number[] = [];
  for (let id = 1; id <= 5_000; id++) {
    const json = { id, name: 'x'.repeat(200) };
    const answer: Answer = await call(`${address}/plants`, 'POST', { token, json });
    if (answer.status !== 201) return { acknowledged, refused: answer, refusedId: id };
    acknowledged.push(id);
  }
  throw new Error('nothing was refused');
}

function assertHonest({ status, text, headers }: Answer, kind: string): void {
  assert.equal(status, 503, text);
  assert.match(text, new RegExp(`"urn:plant-store:problem:${kind}"`));
  assert.match(headers.get('retry-after') ?? '', /^\d+$/);
  assert.doesNotMatch(text, /sqlite|SQL|I\/O|\.db|\//i);
}

it('answers a full disk with 503, keeps what it acknowledged, and goes on once there is room', async (t) => {
  let disk = '';
  t.after(() => spawnSync('umount', ['-l', disk])); // before the folder is removed
  disk = join(tempFolder(t), 'disk');
  mkdirSync(disk);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', disk]);
  if (mounted.status !== 0) return t.skip('a small disk cannot be mounted here: it takes root');
  const database = ['--database', `sqlite:${join(disk, 'plants.db')}`];
  const token = await runOk(['token', 'create', 'alice', ...database]);
  const filler = join(disk, 'filler');
  writeFileSync(filler, Buffer.alloc(1_000_000));
  const { address } = await serve(t, [...database, '--log-level', 'silent']);

  const { acknowledged, refused } = await createUntilRefused(address, token);
  assertHonest(refused, 'storage-full');
  assert.deepEqual(await idsOf(address, token), acknowledged);
  assertHonest(await call(`${address}/plants/1`, 'DELETE', { token }), 'storage-full');
  writeFileSync(filler, '');
  assert.equal((await call(`${address}/plants/1`, 'DELETE', { token })).status, 204);
  assert.deepEqual(await idsOf(address, token), acknowledged.slice(1));
});

it('says that an outcome is unknown where a commit cannot be written, and goes on', async (t) => {
  const path = join(tempFolder(t), 'plants.db');
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

it('says that an outcome is unknown where a sync fails, opens the file anew, and loses nothing', async (t) => {
  if (spawnSync('strace', ['-V']).status !== 0) return t.skip('strace is not installed');
  const path = join(tempFolder(t), 'plants.db');
  const database = ['--database', `sqlite:${path}`];
  const token = await runOk(['token', 'create', 'alice', ...database]);
  const failing = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'];
  const inject = ['-e', 'inject=fsync,fdatasync:error=EIO:when=8'];
  const service = await serve(t, database, { under: [...failing, ...inject] });

  const { acknowledged, refused, refusedId } = await createUntilRefused(service.address, token);
  assertHonest(refused, 'outcome-unknown');
  assert.match(service.log(), /"kind":"outcome-unknown".*"msg":"request failed"/);
  const next = await call(`${service.address}/plants`, 'POST', {
    token,
    json: { id: 9_999, name: 'after' },
  });
  assert.equal(next.status, 201, next.text);
  const found = new Set(await idsOf(service.address, token));
  found.delete(refusedId); // stored or not: nobody was told
  assert.deepEqual([...found], [...acknowledged, 9_999]);
});

it('answers 503 where another process holds the database for too long, and recovers', async (t) => {
  const path = join(tempFolder(t), 'plants.db');
  const database = ['--database', `sqlite:${path}`];
  const token = await runOk(['token', 'create', 'alice', ...database]);
  const { address } = await serve(t, [...database, '--log-level', 'silent']);
  const other = new DatabaseSync(path);
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');

  const create = () => call(`${address}/plants`, 'POST', { token, json: { name: 'a' } });
  let waiting = 8;
  const refused = Array.from({ length: waiting }, () => create().finally(() => waiting--));
  assert.equal((await call(`${address}/livez`, 'GET')).status, 200);
  assert.equal(waiting, 8, 'nobody else waits for the lock');
  for (const answer of await Promise.all(refused)) {
    assertHonest(answer, '(storage-unavailable|overloaded)');
  }
  assert.equal((await call(`${address}/plants`, 'GET', { token })).text, '[]');
  other.exec('ROLLBACK');
  assert.equal((await create()).status, 201);
});

it('is not ready while its file cannot be read, and tells the log alone why', async (t) => {
  const path = join(tempFolder(t), 'plants.db');
  const database = ['--database', `sqlite:${path}`];
  const token = await runOk(['token', 'create', 'alice', ...database]);
  const service = await serve(t, database);
  await call(`${service.address}/livez`, 'GET'); // it has looked for tokens by then
  const whole = readFileSync(path);
  writeFileSync(path, Buffer.alloc(whole.length, 'damaged '));
  const toldBy = async (file: string) =>
    (await call(`${service.address}${file}`, 'GET', { token })).status;

  assertHonest(await call(`${service.address}/plants`, 'GET', { token }), 'storage-unavailable');
  assert.deepEqual([await toldBy('/readyz'), await toldBy('/livez')], [503, 200]);
  assert.match(service.log(), /"level":50.*"requestId":.*"err":.*"msg":"request failed"/);
  writeFileSync(path, whole);
  assert.deepEqual([await toldBy('/readyz'), await toldBy('/plants')], [200, 200]);
});
