/**
 * What a real system does to a service: a full disk, a limit on a file, a disk that fails, a lock
 * of another process, a damaged file. No response may be a false success or a false failure.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { scopes } from '../../src/access.ts';
import { call, type Answer } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile, fill } from '../support/database.ts';
import { diskFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { without } from '../support/programs.ts';

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
  const [before, after, ...others] = text.split(`"/problems/${kind}"`);
  assert.ok(after !== undefined && others.length === 0, text);
  assert.match(headers.get('retry-after') ?? '', /^\d+$/);
  assert.doesNotMatch(`${before}${after}`, /sqlite|SQL|I\/O|\.db|\//i);
}

it(
  'returns 503 if the disk is full, keeps acknowledged changes, and resumes once there is room',
  { skip: without('mount') },
  async (t) => {
    let disk = '';
    t.after(() => spawnSync('umount', ['-l', disk])); // before the folder is removed
    disk = join(diskFolder(t), 'disk');
    mkdirSync(disk);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', disk]);
    if (mounted.status !== 0) return t.skip('a small disk cannot be mounted here: it takes root');
    const database = ['--database', `sqlite:${join(disk, 'plants.db')}`];
    const token = await runOk(['token', 'create', 'alice', '--scope', scopes.join(), ...database]);
    const filler = join(disk, 'filler');
    writeFileSync(filler, Buffer.alloc(1_000_000));
    const { address } = await serve(t, [...database, '--log-level', 'silent']);
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
    writeFileSync(filler, '');
    assert.equal((await share(shares++)).status, 201);
    assert.equal(await countShares(), shares);
    assert.equal((await remove(acknowledged[removed++])).status, 204);
    assert.deepEqual(await idsOf(address, token), acknowledged.slice(removed));
  },
);

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
    assert.match(service.log(), /"level":50.*"msg":"disk failed"/);
    assert.match(
      service.log(),
      /^error: The disk reported an error during a write, .* Check the disk/m,
    );

    const again = await serve(t, database);
    const found = new Set(await idsOf(again.address, token));
    found.delete(refusedId); // stored or not: its outcome was unknown
    assert.deepEqual([...found], acknowledged);
  },
);

it(
  'refuses every write after a failed sync, and serves reads until it exits',
  { skip: without('strace') },
  async (t) => {
    const { path, url } = databaseFile(t);
    const token = await fill(path, 0);
    const service = await serve(t, ['--database', url], { under: failingSync(1) });
    // Open requests keep the service from ending: each is sent to its end later.
    const open = Array.from({ length: 2 }, () => new Connection(service.address));
    const head = (method: string, more = '') =>
      `${method} /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${more}`;
    const body = JSON.stringify({ name: 'late' });
    const [writer = assert.fail(), reader = assert.fail()] = open;
    writer.write(
      head('POST', `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`),
    );
    reader.write(head('GET'));
    t.after(() => open.forEach(({ socket }) => socket.destroy()));

    assertHonest(await createOne(service.address, token), 'outcome-unknown');
    await until('it is stopping', () => service.log().includes('"stopping"'));
    writer.write(body);
    reader.write('\r\n');
    const [refused, list] = await Promise.all(open.map((connection) => connection.answer()));
    assert.equal(refused?.status, 503);
    assert.match(refused?.body ?? '', /storage-unavailable.*Nothing was changed/);
    assert.deepEqual([list?.status, list?.body], [200, '[]']);
    assert.equal(await service.ended, 3);
  },
);

it('exits with the same status with several workers', { skip: without('strace') }, async (t) => {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 0);
  const args = ['--database', url, '--workers', '2'];
  const service = await serve(t, args, { under: failingSync(1) });
  assertHonest(await createOne(service.address, token), 'outcome-unknown');
  assert.equal(await service.ended, 3);
});

function createOne(address: string, token: string): Promise<Answer> {
  return call(`${address}/plants`, 'POST', { token, json: { name: 'a' } });
}

/** A command that fails the sync with the number `at` of each thread of a process. */
function failingSync(at: number): string[] {
  const failing = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'];
  return [...failing, '-e', `inject=fsync,fdatasync:error=EIO:when=${at}`];
}

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
  assert.equal((await call(`${address}/plants`, 'GET', { token })).text, '[{"name":"a","tag":""}]');
  other.exec('ROLLBACK');
  assert.equal((await create()).status, 201);
});

it('is not ready while its file cannot be read, and shows the reason only in the log', async (t) => {
  const path = join(diskFolder(t), 'plants.db');
  const database = ['--database', `sqlite:${path}`];
  const token = await runOk(['token', 'create', 'alice', ...database]);
  const service = await serve(t, database);
  await call(`${service.address}/livez`, 'GET'); // it has looked for tokens by then
  const whole = readFileSync(path);
  writeFileSync(path, Buffer.alloc(whole.length, 'damaged '));
  const statusOf = async (file: string) =>
    (await call(`${service.address}${file}`, 'GET', { token })).status;

  assertHonest(await call(`${service.address}/plants`, 'GET', { token }), 'storage-unavailable');
  assert.deepEqual([await statusOf('/readyz'), await statusOf('/livez')], [503, 200]);
  assert.match(service.log(), /"level":50.*"requestId":.*"err":.*"msg":"request failed"/);
  writeFileSync(path, whole);
  await until('it is opened again', async () => (await statusOf('/readyz')) === 200);
  assert.equal(await statusOf('/plants'), 200);
});

it(
  'reports that nothing was changed if the writer thread cannot start',
  { skip: without('prlimit') },
  async (t) => {
    const { url } = databaseFile(t);
    const database = ['--database', url];
    const token = await runOk(['token', 'create', 'alice', ...database]);
    const { address, child } = await serve(t, [...database, '--log-level', 'silent']);
    const limitFiles = (count: number) =>
      spawnSync('prlimit', ['--pid', String(child.pid), `--nofile=${count}:`]);
    const connection = new Connection(address);
    t.after(() => connection.socket.destroy());
    const answerTo = (head: string, body = '') => {
      const headers = `Host: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`;
      const request = `${head} HTTP/1.1\r\n${headers}\r\nContent-Length: ${body.length}\r\n\r\n`;
      connection.write(request + body);
      return connection.answer();
    };
    const create = (name: string) => answerTo('POST /plants', JSON.stringify({ name }));

    assert.equal((await answerTo('GET /plants'))?.body, '[]'); // so that it is accepted
    limitFiles(3); // no further file can be opened
    const refused = await create('refused');
    assert.equal(refused?.status, 503);
    assert.match(refused.body, /storage-unavailable/);
    limitFiles(1_024);
    assert.equal((await create('stored'))?.status, 201);
    assert.equal((await answerTo('GET /plants'))?.body, '[{"name":"stored","tag":""}]');
  },
);
