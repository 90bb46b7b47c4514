/**
 * Folders for tests. A run of all tests keeps them in memory, where a sync costs nothing.
 */
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const memory = '/dev/shm';
/** A run uses about 1 GiB. A container often has only 64 MiB there. */
const neededBytes = 4 * 2 ** 30;
const diskVariable = 'PLANT_STORE_TEST_DISK';

/** A folder that is deleted after the test. */
export function tempFolder(t: Pick<TestContext, 'after'>): string {
  return folderIn(t, tmpdir());
}

/** A folder on a disk, for tests of disks. It is deleted after the test. */
export function diskFolder(t: Pick<TestContext, 'after'>): string {
  return folderIn(t, process.env[diskVariable] ?? tmpdir());
}

/**
 * Sets TMPDIR of this process and its children to a folder in memory, unless it is set or memory is short. Returns a
 * function that deletes the folder.
 */
export function useMemory(): () => void {
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return () => {};
  const { bavail, bsize } = statfsSync(memory);
  if (bavail * bsize < neededBytes) return () => {};
  const folder = mkdtempSync(join(memory, 'plant-store-'));
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  chmodSync(folder, 0o755); // root runs PostgreSQL as another user
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  if (spawnSync(program).status !== 0) {
    // the mount option noexec
    remove();
    return () => {};
  }
  process.env[diskVariable] = tmpdir();
  process.env['TMPDIR'] = folder;
  process.once('exit', remove);
  return remove;
}

function folderIn(t: Pick<TestContext, 'after'>, parent: string): string {
  const folder = mkdtempSync(join(parent, 'plant-store-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
