/**
 * Backups that the service makes itself.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { backupName } from '../../src/sqlite/backup-folder.ts';
import { call } from '../support/app.ts';
import { run, runOk, serve, type Service } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { listen } from '../support/listen.ts';
import { without } from '../support/programs.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const own = ['plant-store.database', 'plant-store.lock'];

describe('serve --backup-every', { concurrency: 2 }, () => {
  it('backs up again and again, keeps the newest, and reports each to the heartbeat', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 3);
    const folder = tempFolder(t);
    const beats: string[][] = [];
    const monitor = createServer((_, response) => {
      beats.push(readdirSync(folder));
      response.writeHead(beats.length === 1 ? 500 : 200).end();
    });
    const heartbeat = `http://127.0.0.1:${await listen(t, monitor)}/push?key=secret`;
    const others = ['plant-store-of-mine.backup', backupName(new Date('2100-01-01'))];
    for (const name of others) writeFileSync(join(folder, name), '');
    const folderOfMine = backupName(new Date('2020-01-01'));
    mkdirSync(join(folder, folderOfMine));
    const options = ['--backup-every', '1s', '--backup-keep', '2', '--backup-heartbeat', heartbeat];
    const database = ['--database', url, '--keep-changes', '0'];
    const service = await serve(t, [...database, '--backup-dir', folder, ...options]);
    await untilBackup('the first backup', () => beats.length > 0);
    for (const [role, at] of [
      ['manager', 'string'],
      ['member', 'undefined'],
    ] as const) {
      const token = await runOk(['token', 'create', role, '--role', role, '--database', url]);
      const { json } = await call(`${service.address}/token`, 'GET', { token });
      assert.equal(typeof (json as { lastBackup?: unknown }).lastBackup, at, role);
      // The command has added to the log, and the service does not.
      await call(`${service.address}/plants`, 'POST', { token, json: { name: 'Ficus' } });
    }
    const before = beats.length;
    await untilBackup('further backups', () => beats.length >= before + 3);
    assert.equal(await service.stop(), 0);

    const kept = beats.map((files) =>
      new Set(files).difference(new Set([...own, ...others, folderOfMine])),
    );
    const sizes = kept.map(({ size }) => size);
    assert.deepEqual(sizes, [1, ...sizes.slice(1).map(() => 2)]);
    assert.ok(beats.every((files) => others.every((name) => files.includes(name))));
    assert.match(
      service.log(),
      /"level":30,.*"file":".*Z\.backup","ms":\d+,"msg":"backup verified"/,
    );
    assert.match(service.log(), /"level":40.*responded with 500.*"msg":"backup heartbeat failed"/);
    assert.doesNotMatch(service.log(), /secret/);
    const [last = ''] = kept.at(-1) ?? [];
    const target = databaseFile(t);
    await runOk(['restore', join(folder, last), '--database', target.url]);
    assert.deepEqual(soundIds(target.path), [1, 2, 3, 4, 5]);
  });

  it('backs up once for all services with the same folder, in time for each', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 1);
    const folder = tempFolder(t);
    const twoHoursAgo = new Date(Date.now() - 7_200_000);
    writeFileSync(join(folder, backupName(twoHoursAgo)), ''); // so the next is due now
    const backups = ['--backup-every', '2s', '--backup-dir', folder];
    const start = (...options: string[]) => serve(t, ['--database', url, ...backups, ...options]);
    const services = await Promise.all([start(), start('--workers', '2')]);
    const verified = () => services.reduce((sum, service) => sum + countVerified(service), 0);
    await untilBackup('three backups', () => verified() >= 3);
    for (const service of services) assert.equal(await service.stop(), 0);
    const made = backupsIn(folder).slice(1);
    assert.ok(made.length - verified() <= 1, 'the last one can be verified, but not logged');
    const times = made.map((name) =>
      Date.parse(name.replace(/^\D+(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ).*/, '$1-$2-$3:$4:$5')),
    );
    for (const [at, time] of times.slice(1).entries()) {
      assert.ok(time - (times[at] ?? 0) >= 2_000, made.join());
    }
  });

  it('stops at once during a backup, and makes it after the next start', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 5_000);
    const folder = tempFolder(t);
    const start = () =>
      serve(t, ['--database', url, '--backup-every', '1h', '--backup-dir', folder]);
    const first = await start();
    await pauseBackup(first, folder);
    assert.equal(await first.stop(), 0);
    assert.deepEqual(backupsIn(folder), []);
    assert.doesNotMatch(first.log(), /"level":50/);
    const second = await start();
    await untilBackup('the backup is verified', () => countVerified(second) > 0);
    assert.deepEqual(readdirSync(folder), [...own, ...backupsIn(folder)].toSorted());
    await second.stop();
  });

  it('gives no name to a copy that differs from what was restored from it', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 5_000);
    const folder = tempFolder(t);
    const options = ['--database', url, '--backup-every', '1h', '--backup-dir', folder];
    const service = await serve(t, options);
    const resume = await pauseBackup(service, folder, /-restored\.partial-[\da-f-]{36}$/);
    const copy = readdirSync(folder).find((name) => /\.partial-[\da-f-]{36}$/.test(name)) ?? '';
    const altered = join(folder, copy);
    const bytes = readFileSync(altered);
    // Of plants in the first pages, which were restored already.
    const changed = bytes.toString('latin1', 0, 2 ** 19).replaceAll(latin1('🌱'), latin1('🌲'));
    bytes.write(changed, 'latin1');
    writeFileSync(altered, bytes);
    resume();
    await untilBackup('it fails', () => service.log().includes('"msg":"backup failed"'));
    assert.match(service.log(), /The copy has changed since it was made\. Check the disk/);
    assert.deepEqual(readdirSync(folder), own);
    await service.stop();
  });

  it(
    'continues to serve if the disk has no space, or fills up during a backup',
    { skip: without('mount') },
    async (t) => {
      let disk = '';
      t.after(() => spawnSync('umount', ['-l', disk])); // before the folder is removed
      disk = join(tempFolder(t), 'disk');
      mkdirSync(disk);
      const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=240m', 'tmpfs', disk]);
      if (mounted.status !== 0) return t.skip('a small disk cannot be mounted here: it takes root');
      const path = join(disk, 'plants.db');
      const token = await fill(path, 5_000);
      const folder = join(disk, 'backups');
      const filler = join(disk, 'filler');
      writeFileSync(filler, Buffer.alloc(205 * 2 ** 20));
      const backups = ['--backup-every', '1s', '--backup-dir', folder];
      const service = await serve(t, ['--database', `sqlite:${path}`, ...backups]);
      const failures = () => service.log().split('"msg":"backup failed"').length - 1;
      const create = async () => {
        const json = { name: 'Monstera' };
        return (await call(`${service.address}/plants`, 'POST', { token, json })).status;
      };
      await untilBackup('it is refused', () => failures() > 0);
      assert.match(
        service.log(),
        /A backup needs \d+ MiB of free space in \S+\/backups, which has/,
      );
      assert.deepEqual(backupsIn(folder), []);
      assert.equal(await create(), 201);

      writeFileSync(filler, '');
      const resume = await pauseBackup(service, folder);
      const before = failures();
      assert.throws(() => writeFileSync(filler, Buffer.alloc(250 * 2 ** 20)), { code: 'ENOSPC' });
      resume();
      await untilBackup('it fails', () => failures() > before);
      assert.deepEqual(backupsIn(folder), []);
      writeFileSync(filler, '');
      await untilBackup('it succeeds', () => backupsIn(folder).length > 0);
      assert.equal(await create(), 201);
      assert.equal(await service.stop(), 0);
    },
  );

  it('is refused in a folder for another database', async (t) => {
    const { url } = databaseFile(t);
    const folder = tempFolder(t);
    writeFileSync(join(folder, 'plant-store.database'), '/srv/other.db');
    const options = ['--database', url, '--backup-every', '6h', '--backup-dir', folder];
    const { status, stderr } = await run(['serve', ...options]);
    assert.equal(status, 1);
    assert.ok(stderr.includes(`${folder} is for backups of /srv/other.db. Choose another folder`));
  });

  it('is refused for PostgreSQL, and without a folder', async () => {
    const every = ['serve', '--backup-every', '6h'];
    const database = ['--database', 'postgres://plants@127.0.0.1/plants'];
    for (const [options, message] of [
      [every, '--backup-every requires --backup-dir. Set both, or leave out --backup-every.'],
      [
        ['serve', '--backup-dir', '/tmp'],
        '--backup-dir requires --backup-every. Set both, or leave out --backup-dir.',
      ],
      [
        [...every, '--backup-dir', '/tmp', ...database],
        'This works only with SQLite files (sqlite:PATH). For PostgreSQL, see docs/how-to/back-up.md.',
      ],
    ] as const) {
      const { status, stderr } = await run(options);
      assert.deepEqual([status, stderr], [2, `error: ${message}\n`]);
    }
  });
});

/** The process of a backup has little of the processor while others use it (`niceness`). */
const untilBackup: typeof until = (description, condition) =>
  until(description, condition, 120_000);

function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function countVerified(service: Service): number {
  return service.log().split('"msg":"backup verified"').length - 1;
}

function backupsIn(folder: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.filter((name) => name.endsWith('Z.backup')).toSorted();
}

/** Stops the process of the backup while it writes such a file. Returns a function that lets it continue. */
async function pauseBackup(
  { child }: Service,
  folder: string,
  file = /^[^.]*\.backup\.partial-[\da-f-]{36}$/,
): Promise<() => void> {
  const hasBegun = () =>
    readdirSync(folder).some(
      (name) => file.test(name) && statSync(join(folder, name)).size > 2 ** 20,
    );
  await untilBackup('a backup is in progress', hasBegun);
  const [pid] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ');
  process.kill(Number(pid), 'SIGSTOP');
  return () => process.kill(Number(pid), 'SIGCONT');
}
