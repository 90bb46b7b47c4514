/**
 * Whether a path can be that of a database. SQLite keeps the -wal and -shm files next to the path that it opens, so
 * two processes that open one file in different folders overwrite each other's changes.
 */
import {
  accessSync,
  constants,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Refusal } from '../../refusal.ts';
import { systemCode, systemReason } from '../../shared/system-errors.ts';
import { fixPermissions } from '../errors.ts';
import { companionSuffixes, isOwnLink } from './files.ts';

/** The path without symbolic links. The file need not exist, also if a link leads to it. Throws a system error. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error; // ELOOP too, so the links below end
  }
  const folder = realpathSync(dirname(path));
  const file = join(folder, basename(path));
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? realPath(resolve(folder, readlinkSync(file))) : file;
}

/** Throws Refusal if the existing path is no file that can be written, or if the file has a second path. */
export function refuseUnusablePath(path: string): void {
  if (!statSync(path).isFile()) {
    throw new Refusal(`${path} is not a file. Choose a database file with --database.`);
  }
  const file = realPath(path);
  refuseMountedAlone(file);
  for (const suffix of ['', ...companionSuffixes]) refuseSecondPath(file + suffix);
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw new Refusal(
      `Cannot write to ${path} or its folder (${systemReason(error, 'no longer there')}). SQLite needs write access to both. ${fixPermissions}`,
      { cause: error },
    );
  }
}

function refuseSecondPath(file: string): void {
  const [folder, name] = [dirname(file), basename(file)];
  const { nlink = 1, ino } = statSync(file, { throwIfNoEntry: false }) ?? {};
  if (nlink === 1) return;
  const links = readdirSync(folder).filter(
    (other) => lstatSync(join(folder, other), { throwIfNoEntry: false })?.ino === ino,
  );
  if (nlink === 1 + links.filter((other) => isOwnLink(other, name)).length) return;
  // A creation or a restore may have removed its link before the folder was read.
  if (statSync(file, { throwIfNoEntry: false })?.nlink !== nlink) return refuseSecondPath(file);
  const seen = links.find((other) => other !== name && !isOwnLink(other, name));
  throw new Refusal(
    `${file} has ${nlink} hard links${seen === undefined ? '' : `, such as ${join(folder, seen)}`}. ` +
      "Processes that open different ones overwrite each other's changes. " +
      `Delete the other links, which "find / -samefile ${file}" shows.`,
  );
}

/** In /proc/self/mountinfo, the fifth field is the mount point, with some characters in octal, such as \\040. */
function refuseMountedAlone(file: string): void {
  let lines: string[];
  try {
    lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  } catch {
    return; // not Linux
  }
  const unescape = (field = '') =>
    field.replaceAll(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
  if (!lines.some((line) => unescape(line.split(' ')[4]) === file)) return;
  throw new Refusal(
    `${file} is mounted without its folder, so the newest changes would be in a file next to it that is not in the ` +
      'mount. Mount its folder instead.',
  );
}
