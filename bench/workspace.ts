/**
 * What a run needs of the machine for a while and gives back however it ends, by Ctrl-C too: a
 * temporary folder and child processes.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

export type Child = ChildProcessByStdio<null, Readable, null>;

/** What statfs(2) says of a file system that is in memory. */
const tmpfsType = 0x01021994;

const children = new Set<Child>();

// First the children, so that none of them writes into the folder while it is removed.
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

/** A folder on a disk that is gone once the run is over. */
export function temporaryFolder(): string {
  if (statfsSync(tmpdir()).type === tmpfsType) {
    throw new Error(
      `${tmpdir()} is in memory, where a synced commit costs nothing: set TMPDIR to a folder on a disk.`,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Starts a command whose standard output is ours and whose errors people see. */
export function launch(command: string, args: readonly string[], cwd?: string): Child {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
}

/** Runs a command to its end and returns what it printed. */
export async function run(command: string, args: readonly string[], cwd?: string): Promise<string> {
  const child = launch(command, args, cwd);
  const [printed, [status]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${String(status)}`);
  return printed;
}

/** Everything runs as in production, and nobody's own settings change what is measured. */
const env = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('PLANT_STORE_')),
  ),
  NODE_ENV: 'production',
};

/** Throws where a tool is missing, naming the package that brings it. */
export async function refuseMissingTools(): Promise<void> {
  const packages = { wrk: 'wrk', taskset: 'util-linux', curl: 'curl', npm: 'npm' };
  for (const [tool, name] of Object.entries(packages)) {
    await run('sh', ['-c', `command -v ${tool}`]).catch(() => {
      throw new Error(`${tool} is missing. On Debian: apt-get install ${name}`);
    });
  }
}
