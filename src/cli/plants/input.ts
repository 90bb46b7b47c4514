import { readFileSync } from 'node:fs';
import { Refusal } from '../../refusal.ts';

const standardInput = 0;

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
};

/** Reads a file, or standard input for `-`. Throws Refusal, which says what could not be read. */
export function readInput(what: string, file: string): Buffer {
  try {
    return readFileSync(file === '-' ? standardInput : file);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const reason = reasons[code];
    if (reason === undefined) throw error;
    throw new Refusal(`Cannot read ${what} from ${file}: ${reason}.`, { cause: error });
  }
}
