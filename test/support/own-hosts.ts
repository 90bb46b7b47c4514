/**
 * Runs commands with an /etc/hosts of their own, in their own mount namespace.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { tempFolder } from './temp.ts';
import { without } from './programs.ts';

/** The wrapper of a command that has these lines as /etc/hosts. */
export function withHosts(t: TestContext, lines: readonly string[]): readonly string[] {
  const file = join(tempFolder(t), 'hosts');
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  return wrapper(file);
}

/** The reason why commands cannot have an /etc/hosts of their own, or false. */
export function cannotHaveHosts(): string | false {
  const missing = without('unshare', 'mount');
  if (missing !== false) return missing;
  const [command = '', ...args] = wrapper('/etc/hosts');
  const canMount = spawnSync(command, [...args, 'true']).status === 0;
  return canMount ? false : 'needs the right to mount';
}

function wrapper(file: string): readonly string[] {
  return ['unshare', '-m', 'sh', '-c', `mount --bind '${file}' /etc/hosts && exec "$@"`, 'sh'];
}
