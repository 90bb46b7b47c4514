/**
 * Temporary folders and child processes of a run. They are removed and killed when it ends, also by Ctrl-C.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

export type Child = ChildProcessByStdio<null, Readable, null>;

/** The type of a file system in memory (statfs(2)). */
const tmpfsType = 0x01021994;

const children = new Set<Child>();

// Before the folder is removed, so that no child still writes to it.
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

/** Creates a folder on a disk, which is removed when the run ends. */
export function temporaryFolder(): string {
  if (statfsSync(tmpdir()).type === tmpfsType) {
    throw new Error(
      `${tmpdir()} is in memory, where a sync costs nothing. Set TMPDIR to a folder on a disk.`,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Starts a command with piped standard output and inherited standard error. */
export function launch(command: string, args: readonly string[], cwd?: string): Child {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
}

/** Runs a command and returns its standard output. Throws if it fails. */
export async function run(command: string, args: readonly string[], cwd?: string): Promise<string> {
  const child = launch(command, args, cwd);
  const [printed, [status]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} exited with ${String(status)}`);
  return printed;
}

/** As in production, and without settings of the service in the environment of this run. */
const env = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('PLANT_STORE_')),
  ),
  NODE_ENV: 'production',
};

/** Throws if a tool is missing, and names the package that provides it. */
export async function assertToolsInstalled(): Promise<void> {
  const packages = { wrk: 'wrk', taskset: 'util-linux', npm: 'npm' };
  for (const [tool, name] of Object.entries(packages)) {
    await run('sh', ['-c', `command -v ${tool}`]).catch(() => {
      throw new Error(`${tool} is missing. On Debian: apt-get install ${name}`);
    });
  }
}
