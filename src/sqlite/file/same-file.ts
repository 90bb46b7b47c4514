/**
 * Detects that the open database file was moved, deleted, replaced or truncated. SQLite would continue to use
 * the open file, and a restart would not find the changes.
 *
 * Files are checked by path only, because closing a second file descriptor would release SQLite's locks (POSIX).
 */
import { realpathSync, statSync, type BigIntStats } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { Refusal } from '../../refusal.ts';
import { readPragma } from '../driver.ts';

/** Device and inode, which identify a file. Both numbers can exceed 2^53. */
export interface FileId {
  dev: bigint;
  ino: bigint;
}

export class OpenFile {
  readonly id: FileId;
  readonly #path: string;
  /** The -wal and -shm files. */
  readonly #companions: readonly (readonly [path: string, id: FileId])[];
  readonly #database: DatabaseSync;
  /** The size of the file at the last check. */
  #lastBytes = 0n;

  /**
   * `database` was opened from `path` and has read from it, so its WAL exists. Throws Refusal if it is not the file with
   * this id.
   */
  constructor(database: DatabaseSync, path: string, id = idOf(path)) {
    this.#path = path;
    this.id = id;
    const companions = ['-wal', '-shm'].map((suffix) => realpathSync(path) + suffix);
    this.#companions = companions.map((companion) => [companion, idOf(companion)]);
    this.#database = database;
    this.check();
  }

  /** Throws Refusal if the file was moved, replaced or truncated. Takes 3 to 4 µs. */
  check(): void {
    const { size } = refuseOtherFile(this.#path, this.id);
    for (const [path, id] of this.#companions) refuseOtherFile(path, id);
    // A complete file can be smaller than the database, because new pages can be in the WAL only. But only VACUUM
    // shrinks the file.
    if (size < this.#lastBytes && !this.#isComplete(size)) {
      throw new Refusal(
        `${this.#path} was truncated from ${this.#lastBytes} to ${size} bytes while it was in use. ` +
          'Restore a backup.',
      );
    }
    this.#lastBytes = size;
  }

  #isComplete(bytes: bigint): boolean {
    try {
      const pages = Number(readPragma(this.#database, 'page_count'));
      return Number(bytes) >= pages * Number(readPragma(this.#database, 'page_size'));
    } catch {
      return false; // SQLite has detected the damage
    }
  }
}

/** Throws Refusal if the file at the path is missing or another one. */
export function refuseOtherFile(path: string, { dev, ino }: FileId): { size: bigint } {
  const current = statOf(path);
  if (current === undefined) {
    throw new Refusal(
      `${path} was moved or deleted while it was in use. ` +
        'Put it back, with the files -wal and -shm next to it, and start again.',
    );
  }
  if (current.dev !== dev || current.ino !== ino) {
    throw new Refusal(
      `${path} was replaced by another file while it was in use. Put the original file back. To use the new one ` +
        'instead, move it to another folder, and the files -wal and -shm to the original. Then restore the new one ' +
        'with "npx plant-store restore".',
    );
  }
  return current;
}

/** Undefined if there is no such file. */
function statOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    throw new Refusal(
      `${path} is no longer accessible. Check its folder's permissions and its file system.`,
      { cause: error },
    );
  }
}

function idOf(path: string): FileId {
  const { dev, ino } = statSync(path, { bigint: true });
  return { dev, ino };
}
