/**
 * The systemd unit of docs/how-to/deploy.md. The tests do not need systemd as the first process: they check the file.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { storageFailureStatus } from '../../src/cli/errors.ts';
import { maxShutdownMs } from '../../src/cli/serve/serve.ts';
import { call } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';
import { withoutUnprivileged } from '../support/unprivileged.ts';
import { without } from '../support/programs.ts';

const unit = readFileSync(new URL('../../deploy/plant-store.service', import.meta.url), 'utf8');
const nobody = 65_534;
const noOtherUser = (process.getuid?.() !== 0 && 'needs root') || withoutUnprivileged;
const noSystemd = without('systemd-analyze');

it('the units are valid, and the service is confined', { skip: noSystemd }, (t) => {
  const folder = tempFolder(t);
  const file = join(folder, 'plant-store.service');
  writeFileSync(file, unit.replace(/ExecStart=\S+ \S+/, `ExecStart=${process.execPath} /bin/true`));
  const socket = join(folder, 'plant-store.socket');
  cpSync(new URL('../../deploy/plant-store.socket', import.meta.url), socket);
  const verify = ['verify', file, socket];
  const { stderr, status } = spawnSync('systemd-analyze', verify, { encoding: 'utf8' });
  // As systemd before 254 says it.
  const newer =
    /^.*: Unknown key 'Restart(?:Steps|MaxDelaySec)' in section \[Service\], ignoring\.\n/gm;
  assert.deepEqual([stderr.replaceAll(newer, ''), status], ['', 0]);
  // From 0 to 100. A unit without settings has 96.
  const args = ['security', '--offline=true', '--no-pager', '--threshold=20', file];
  execFileSync('systemd-analyze', args, { stdio: 'ignore' });
});

it('the unit waits for a graceful stop, and restarts without end, but not after a disk failure', () => {
  const [, section = ''] = /\[Unit\]\n([^]*?)\n\[/.exec(unit) ?? [];
  assert.match(section, /^StartLimitIntervalSec=0$/m);
  assert.ok(Number(valueOf('RestartMaxDelaySec')) > Number(valueOf('RestartSec')));
  assert.ok(Number(valueOf('RestartSteps')) > 0); // without it, systemd ignores the maximum
  assert.ok(Number(valueOf('TimeoutStopSec')) * 1_000 > maxShutdownMs);
  assert.ok(valueOf('RestartPreventExitStatus').split(' ').includes(String(storageFailureStatus)));
  assert.ok(Number(valueOf('LimitNOFILE')) >= 10_200);
});

it(
  'root can create tokens for a service that runs as another user',
  { skip: noOtherUser },
  async (t) => {
    const { folder, url } = databaseFile(t);
    chownSync(folder, nobody, nobody);
    const database = ['--database', url];
    const create = () => runOk(['token', 'create', 'alice', ...database]);
    await runOk(['migrate', ...database], { uid: nobody });
    const first = await create();
    const { address } = await serve(t, database, { uid: nobody });
    const second = await create();
    for (const token of [first, second]) {
      const json = { name: 'Monstera' };
      assert.equal((await call(`${address}/plants`, 'POST', { token, json })).status, 201);
    }
    for (const file of readdirSync(folder)) {
      assert.equal(statSync(join(folder, file)).uid, nobody, file);
    }
  },
);

function valueOf(name: string): string {
  const [, value] = new RegExp(`^${name}=(.*)$`, 'm').exec(unit) ?? [];
  if (value === undefined) throw new Error(`the unit has no ${name}`);
  return value;
}
