import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { Refusal } from '../../refusal.ts';
import { io } from '../output.ts';

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
};

/** Reads a file, or standard input for `-`. Rejects with a Refusal that says what could not be read. */
export async function readInput(what: string, file: string): Promise<Buffer> {
  try {
    return await (file === '-' ? buffer(io.stdin) : readFile(file));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const reason = reasons[code];
    if (reason === undefined) throw error;
    throw new Refusal(`Cannot read ${what} from ${file}: ${reason}.`, { cause: error });
  }
}
