/**
 * The systemd unit of docs/deploy.md. The tests do not need systemd as the first process: they check the file, and
 * compare its limits with what the service does.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { diskFailureStatus } from '../../src/cli/reason.ts';
import { maxShutdownMs } from '../../src/cli/shutdown-timeout.ts';
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

it('the unit is valid, and confines the service', { skip: noSystemd }, (t) => {
  const file = join(tempFolder(t), 'plant-store.service');
  writeFileSync(file, unit.replace(/ExecStart=\S+ \S+/, `ExecStart=${process.execPath} /bin/true`));
  const { stderr, status } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  assert.deepEqual([stderr, status], ['', 0]);
  // From 0 to 100. A unit without settings has 96.
  const args = ['security', '--offline=true', '--no-pager', '--threshold=20', file];
  execFileSync('systemd-analyze', args, { stdio: 'ignore' });
});

it('the unit waits for a graceful stop, and does not restart after a disk failure', () => {
  const shutdownTimeoutMs = maxShutdownMs + 2_000; // that of the first process if there are workers
  assert.ok(Number(valueOf('TimeoutStopSec')) * 1_000 > shutdownTimeoutMs);
  assert.ok(valueOf('RestartPreventExitStatus').split(' ').includes(String(diskFailureStatus)));
  assert.ok(Number(valueOf('LimitNOFILE')) >= 10_200);
});

it(
  'the unit allows every system call of the service',
  { skip: without('systemd-analyze', 'strace') || noOtherUser },
  async (t) => {
    const { folder, url } = databaseFile(t);
    chownSync(folder, nobody, nobody);
    const trace = join(folder, 'trace');
    const under = ['strace', '-f', '-qq', '-o', trace];
    const args = ['--database', url, '--workers', '2'];
    const { address, child } = await serve(t, args, { uid: nobody, under });
    const token = await runOk(['token', 'create', 'alice', '--database', url], { uid: nobody });
    const json = { name: 'Monstera' };
    assert.equal((await call(`${address}/plants`, 'POST', { token, json })).status, 201);
    const [primary = ''] = childrenOf(child.pid);
    process.kill(Number(primary), 'SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));

    const [allow = '', deny = ''] = [...unit.matchAll(/^SystemCallFilter=~?(.*)$/gm)].map(
      ([, set = '']) => set,
    );
    const allowed = systemCalls(allow).difference(systemCalls(deny));
    const lines = readFileSync(trace, 'utf8').matchAll(/^\d+ +(\w+)\(/gm);
    const used = new Set([...lines].map(([, name = '']) => name));
    assert.ok(used.size > 40);
    assert.deepEqual([...used.difference(allowed)], []);
  },
);

it(
  'root can create tokens for a service that runs as another user',
  { skip: noOtherUser },
  async (t) => {
    const { folder, url } = databaseFile(t);
    chownSync(folder, nobody, nobody);
    const create = () => runOk(['token', 'create', 'alice', '--database', url]);
    const args = ['--database', url];
    const service = await serve(t, args, { uid: nobody });
    const first = await create();
    await service.stop();
    const second = await create();
    const { address } = await serve(t, args, { uid: nobody });
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

/** The system calls in a set of systemd, such as @system-service. */
function systemCalls(set: string): Set<string> {
  const list = execFileSync('systemd-analyze', ['syscall-filter', set], { encoding: 'utf8' });
  const members = [...list.matchAll(/^ +([@\w-]+)$/gm)].map(([, name = '']) => name);
  return new Set(
    members.flatMap((name) => (name.startsWith('@') ? [...systemCalls(name)] : [name])),
  );
}

function childrenOf(pid: number | undefined): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
}
