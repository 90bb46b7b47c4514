/**
 * What `login` keeps for later commands: a file for each profile, with the address of a service and a token.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { Refusal } from '../../refusal.ts';
import { systemCode, systemReason } from '../../shared/system-errors.ts';
import { refuseUnreadable } from '../errors.ts';
import { flag, parseBaseUrl } from '../options.ts';
import { printError } from '../output.ts';

export const defaultProfile = 'default';

export interface Profile {
  url: string;
  token: string;
  /** Of the request that creates the token to keep, until it is kept. */
  key?: string | undefined;
}

export function profileFlag() {
  return flag('--profile <name>', 'name of what "login" has kept').argParser((text) => {
    if (/^\w[\w-]{0,63}$/.test(text)) return text;
    throw new InvalidArgumentError('Use up to 64 letters, digits, underscores and hyphens.');
  });
}

/** Undefined if this user can read none, as with sudo and the home folder of somebody else. Warns if others can read it. */
export async function readProfile(name: string): Promise<Profile | undefined> {
  const file = fileOf(name);
  if (file === undefined) return undefined;
  try {
    await using handle = await open(file);
    const { mode } = await handle.stat();
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      printError(`Warning: other users can use the token in ${file}. Run: chmod 600 '${file}'`);
    }
    return profileIn(await handle.readFile('utf8'), file);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(systemCode(error) ?? '')) return undefined;
    return refuseUnreadable(
      file,
      'Sign in again, or set another folder in XDG_CONFIG_HOME.',
    )(error);
  }
}

function profileIn(text: string, file: string): Profile {
  try {
    const { url, token, key } = JSON.parse(text);
    if (typeof token === 'string') return { url: parseBaseUrl(String(url)), token, key };
  } catch {
    // as without a token
  }
  throw new Refusal(`${file} is damaged. Sign in again with "npx plant-store login".`);
}

/** Replaces the profile at once, so that no reader sees half of it. */
export async function writeProfile(name: string, profile: Profile): Promise<void> {
  const file = fileOf(name);
  if (file === undefined) {
    throw new Refusal(
      'There is no home folder to keep the token in. Set XDG_CONFIG_HOME to a folder, or the token in PLANT_STORE_TOKEN.',
    );
  }
  const temporary = `${file}.${randomUUID()}`;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    const text = `${JSON.stringify(profile)}\n`;
    await writeFile(temporary, text, { mode: 0o600, flag: 'wx', flush: true });
    await rename(temporary, file);
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => {}); // the first error is the reason
    const reason = systemReason(cause, 'the folder was deleted');
    throw new Refusal(`Cannot keep the token in ${file}: ${reason}.`, { cause });
  }
}

export async function deleteProfile(name: string): Promise<void> {
  const file = fileOf(name);
  if (file !== undefined) await rm(file, { force: true });
}

/** Undefined without a home folder, as some services run. */
function fileOf(name: string): string | undefined {
  const { XDG_CONFIG_HOME: folder = '' } = process.env;
  const parent = isAbsolute(folder) ? folder : join(home(), '.config');
  return isAbsolute(parent) ? join(parent, 'plant-store', `${name}.json`) : undefined;
}

function home(): string {
  try {
    return homedir();
  } catch {
    return ''; // the user is in no list of users
  }
}
