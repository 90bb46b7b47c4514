/**
 * The limits of the systemd unit of docs/how-to/deploy.md, compared with what the service does.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { call } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { without } from '../support/programs.ts';
import { noSystemd, startSystemd } from '../support/systemd.ts';
import { until } from '../support/until.ts';
import { withoutUnprivileged } from '../support/unprivileged.ts';

const unit = readFileSync(new URL('../../deploy/plant-store.service', import.meta.url), 'utf8');
const nobody = 65_534;
const noOtherUser = (process.getuid?.() !== 0 && 'needs root') || withoutUnprivileged;

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
  'systemd starts no service that was stopped, or that lost its file',
  { skip: noSystemd },
  async (t) => {
    const { address, run } = await startSystemd(t, ['0.1.0']);
    const answers = () =>
      call(`${address}/livez`, 'GET').then(
        () => true,
        () => false,
      );
    const isActive = (name: string) => run(`systemctl is-active ${name} || true`);
    for (const end of ['systemctl stop plant-store', 'rm /var/lib/plant-store/plant-store.db']) {
      await run('systemctl start plant-store');
      await until('it serves', answers);
      await run(end);
      await until('its socket is closed', async () => !(await answers()));
      assert.equal(await isActive('plant-store.socket'), 'inactive', end);
      assert.match(await isActive('plant-store'), /^(?:inactive|failed)$/);
    }
    assert.match(await run('systemctl show plant-store'), /^ExecMainStatus=3$/m);
  },
);

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
