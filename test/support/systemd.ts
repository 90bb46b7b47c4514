/**
 * A systemd of its own, with the units of docs/how-to/deploy.md, in namespaces with folders of their own.
 */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from './postgres.ts';
import { without } from './programs.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';
import { withoutUnprivileged } from './unprivileged.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const isolated = ['--mount', '--pid', '--fork', '--uts', '--ipc', '--cgroup', '--kill-child'];
const mountGroups = 'mount -t tmpfs tmpfs /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup';
const canIsolate = () =>
  spawnSync('unshare', [...isolated, '--mount-proc', 'sh', '-c', mountGroups]).status === 0;

export const noSystemd =
  without('systemd-analyze', 'unshare', 'mount', 'bash') ||
  (!canIsolate() && 'needs root, namespaces and control groups') ||
  withoutUnprivileged; // the user of the service reads the checkout

const boot = `
  mount --make-rprivate / && ${mountGroups}
  mkdir "/sys/fs/cgroup/$3" && echo $$ > "/sys/fs/cgroup/$3/cgroup.procs"
  for folder in /run /var/lib /var/backups /etc/systemd/system /lib/systemd/system-generators; do
    mount -t tmpfs tmpfs $folder
  done
  mount --bind "$0" /lib/systemd/system
  mount --bind "$1" /opt
  mount --bind "$2" /opt/checkout
  exec env container=other /lib/systemd/systemd --system --unit=basic.target --show-status=false`;

/** The targets that units depend on, without all that a machine starts. */
const targets = ['basic', 'multi-user', 'network-online', 'shutdown', 'sockets', 'sysinit'];

export interface Systemd {
  /** Of the service, once it is started. */
  address: string;
  /** Runs a script in the namespaces, and returns what it prints. */
  run: (script: string) => Promise<string>;
}

/** Starts systemd. This checkout is installed in a folder of each version in /opt, and the first one is the current one. */
export async function startSystemd(
  t: Pick<TestContext, 'after'>,
  versions: readonly string[],
): Promise<Systemd> {
  const [units, opt, port] = [tempFolder(t), tempFolder(t), await freePort()];
  for (const target of targets) {
    writeFileSync(join(units, `${target}.target`), '[Unit]\nDefaultDependencies=no\n');
  }
  for (const unit of ['plant-store.service', 'plant-store.socket']) {
    const text = readFileSync(join(root, 'deploy', unit), 'utf8')
      .replace('/usr/bin/node', process.execPath.replace(root, '/opt/checkout/'))
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`);
    writeFileSync(join(units, unit), text);
  }
  chmodSync(opt, 0o755); // for the user of the service
  mkdirSync(join(opt, 'checkout')); // which can be in /tmp, where the service has another one
  for (const version of versions) {
    const modules = join(opt, `plant-store-${version}`, 'node_modules');
    mkdirSync(join(modules, '.bin'), { recursive: true });
    symlinkSync('/opt/checkout', join(modules, 'plant-store'));
    symlinkSync('../plant-store/bin/plant-store.js', join(modules, '.bin/plant-store'));
  }
  symlinkSync(`/opt/plant-store-${versions[0]}`, join(opt, 'plant-store'));

  const args = [
    ...isolated,
    '--mount-proc',
    'sh',
    '-c',
    boot,
    units,
    opt,
    root,
    `plant-store-${port}`,
  ];
  const child = spawn('unshare', args, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const run = async (script: string) => {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
    const inside = ['--target', children.trim(), '--all', 'bash', '-c', script];
    return (await promisify(execFile)('nsenter', inside)).stdout.trim();
  };
  const isRunning = () => run('systemctl is-active basic.target').catch(() => '');
  await until('systemd runs', async () => (await isRunning()) === 'active', 20_000);
  return { address: `http://127.0.0.1:${port}`, run };
}
