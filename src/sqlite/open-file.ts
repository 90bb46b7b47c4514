/**
 * Notices if the file that a connection has open is no longer the database at its path: moved, deleted,
 * replaced or truncated. SQLite would go on with what it has open, and a restart would not find it.
 *
 * Files are checked by path alone: to close a descriptor of a database drops the locks that SQLite
 * holds on it in this process.
 */
import { realpathSync, statSync, type BigIntStats } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Refusal } from '../refusal.ts';

/** Two names are of one file if both numbers are equal. They can exceed 2^53. */
export interface FileId {
  dev: bigint;
  ino: bigint;
}

export class OpenFile {
  readonly id: FileId;
  /** The size of the WAL at the last check. */
  walBytes = 0;
  readonly #path: string;
  /** Its WAL, and the index of the WAL that all processes share. */
  readonly #companions: readonly { path: string; id: FileId }[];
  readonly #bytesOfPages: StatementSync;
  /** The largest size that was seen. */
  #bytes = 0n;

  /** `database` was opened from `path` and has read it, so that its WAL is there. */
  constructor(database: DatabaseSync, path: string) {
    this.#path = path;
    this.id = idOf(path);
    this.#companions = ['-wal', '-shm'].map((suffix) => {
      const companion = realpathSync(path) + suffix;
      return { path: companion, id: idOf(companion) };
    });
    this.#bytesOfPages = database.prepare(
      'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
    );
    this.check();
  }

  /** Throws Refusal if it is not whole or not in its place. Costs three or four microseconds. */
  check(): void {
    const { size } = refuseOther(this.#path, this.id);
    const [wal] = this.#companions.map(({ path, id }) => refuseOther(path, id));
    this.walBytes = Number(wal?.size);
    // Pages that are new can be in the WAL alone, so the number of pages alone tells nothing. But the
    // file does not shrink, unless somebody has made the database smaller with VACUUM.
    if (size < this.#bytes && !this.#isWhole(size)) {
      throw new Refusal(
        `${this.#path} was truncated while it was in use: it has ${size} bytes of ${this.#bytes}. ` +
          'Stop the service and restore a backup.',
      );
    }
    this.#bytes = size;
  }

  #isWhole(bytes: bigint): boolean {
    try {
      return Number(bytes) >= Number(this.#bytesOfPages.get()?.['bytes']);
    } catch {
      return false; // SQLite has noticed it as well
    }
  }
}

/** Throws Refusal if the file at the path is not this one. */
export function refuseOther(path: string, { dev, ino }: FileId): { size: bigint } {
  const now = lookAt(path);
  if (now === undefined) {
    throw new Refusal(
      `${path} was moved or deleted while it was in use. ` +
        'Put it back where it was, with the files -wal and -shm beside it.',
    );
  }
  if (now.dev !== dev || now.ino !== ino) {
    throw new Refusal(`${path} was replaced by another file while it was in use.`, {
      kind: 'replaced-file',
    });
  }
  return now;
}

function lookAt(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    throw new Refusal(`${path} cannot be reached any more.`, { cause: error });
  }
}

function idOf(path: string): FileId {
  const { dev, ino } = statSync(path, { bigint: true });
  return { dev, ino };
}
