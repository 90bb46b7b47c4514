/**
 * The commands of docs/how-to/back-up.md that copy backups to another machine. Here, that is another folder.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { runOk } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { documentedBlock } from '../support/documented.ts';
import { without } from '../support/programs.ts';
import { tempFolder } from '../support/temp.ts';

const block = documentedBlock('how-to/back-up.md');
const names = [
  'plant-store-20260131T000000Z.backup',
  'plant-store-20260131T060000Z.backup',
] as const;
const killed = `${names[1]}.partial-1`;

it(
  'rclone copies backups off-site, and never changes a copy',
  { skip: without('rclone') },
  async (t) => {
    const { backups, restored, shell, backUp } = await start(t);
    const remote = tempFolder(t);
    const there = (name: string) => join(remote, 'plant-store', name);
    const target = /sftp host .*/;
    shell(block('rclone config create').replace(target, `alias remote ${remote}`));
    await backUp(names[1]);
    shell(/ExecStart=(.*rclone.*)/.exec(block('ExecStart=/usr/bin/rclone'))?.[1] ?? assert.fail());
    assert.ok(!existsSync(there(killed)));
    shell(block('rclone copy offsite:'));
    for (const name of names) {
      assert.deepEqual(readFileSync(there(name)), readFileSync(join(backups, name)));
    }
    await restores(t, join(restored, names[0]));
    appendFileSync(join(backups, names[0]), 'damage');
    const copy = /rclone copy .*/.exec(block('rclone config create'))?.[0] ?? assert.fail();
    assert.throws(() => shell(copy), /immutable file modified/);
    assert.deepEqual(readFileSync(there(names[0])), readFileSync(join(restored, names[0])));
  },
);

it('restic keeps versions of backups off-site', { skip: without('restic') }, async (t) => {
  const { backups, restored, shell, backUp } = await start(t);
  const remote = tempFolder(t);
  const script = block('restic init').replace(/sftp:\S+/, remote);
  shell(script);
  await backUp(names[1]);
  shell(script.replace(/^[^]*?(?=set -a)/, '').replace('restic init\n', '')); // as every hour
  shell(block('restic restore'));
  assert.ok(!existsSync(join(restored, backups, killed)));
  for (const name of names) {
    const copy = join(restored, backups, name);
    assert.deepEqual(readFileSync(copy), readFileSync(join(backups, name)));
    await restores(t, copy);
  }
});

it('the units copy backups every hour', { skip: without('systemd-analyze', 'rclone') }, (t) => {
  const folder = tempFolder(t);
  const units = { service: 'ExecStart=/usr/bin/rclone', timer: 'OnCalendar=hourly' };
  const files = Object.entries(units).map(([kind, text]) => {
    const file = join(folder, `plant-store-offsite.${kind}`);
    writeFileSync(file, block(text));
    return file;
  });
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...files], {
    encoding: 'utf8',
  });
  assert.deepEqual([stderr, status], ['', 0]);
});

/** A backup, what a killed one left, and a shell with the documented paths in folders of the test. */
async function start(t: TestContext) {
  const [backups, settings, home] = [tempFolder(t), tempFolder(t), tempFolder(t)];
  const restored = join(home, 'restored');
  const { path, url } = databaseFile(t);
  await fill(path, 1_000);
  const shell = (script: string) => {
    const own = script
      .replaceAll(/^apt-get .*\n/gm, '')
      .replaceAll('/var/lib/plant-store/backups', backups)
      .replaceAll('/etc/plant-store', settings)
      .replaceAll('/root/restored', restored);
    const { status, stdout, stderr } = spawnSync('sh', ['-euc', own], {
      cwd: home,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: home },
    });
    if (status !== 0) throw new Error(`${own}${stdout}${stderr}`);
  };
  const backUp = (name: string) => runOk(['backup', join(backups, name), '--database', url]);
  await backUp(names[0]);
  writeFileSync(join(backups, killed), '');
  return { backups, restored, shell, backUp };
}

async function restores(t: TestContext, copy: string): Promise<void> {
  const { path, url } = databaseFile(t);
  await runOk(['restore', copy, '--database', url]);
  await runOk(['verify', '--database', url]);
  assert.equal(soundIds(path).length, 1_000);
}
