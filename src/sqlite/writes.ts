/**
 * The writes of the storage as messages: what travels to the thread that does them, and what comes
 * back. Everything here is plain data, because it is copied from one thread to the other.
 */
import type { Change, ChangeResults } from '../changes.ts';
import type { NewToken, TokenRecord } from '../identity-storage.ts';
import type { ProblemKind } from '../problem.ts';
import type { Tables } from './connection.ts';
import type { FileId } from './open-file.ts';

export type Write =
  | Change
  | readonly ['createToken', token: NewToken]
  | readonly ['revokeToken', id: string, revokedAtMs: number];

export type WriteKind = Write[0];

/** Writes that travel together, by number. `sinceMs` is when they were sent, by nowMs(). */
export interface Batch {
  sinceMs: number;
  writes: ReadonlyMap<number, Write>;
}

/** What the thread is started with. */
export interface ThreadData {
  path: string;
  /** The file that the others of this process have open. */
  fileId: FileId;
  /** One BigInt64: the number of the last write that it has taken, for the case that it dies. */
  lastTaken: SharedArrayBuffer;
}

/** A clock that all threads share and nobody sets: performance.now() has a zero of its own in each. */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

/** What a write of a kind resolves to. */
export interface WriteResults extends ChangeResults {
  createToken: void;
  revokeToken: TokenRecord | undefined;
}

/** The result, or what it was refused for. */
export type Outcome = WriteResults[WriteKind] | Failure;

/** By the number of the write. */
export type Outcomes = ReadonlyMap<number, Outcome>;

export interface Failure {
  problem: { kind: ProblemKind; detail: string; cause?: unknown };
}

export function isFailure(outcome: Outcome): outcome is Failure {
  return typeof outcome === 'object' && 'problem' in outcome;
}

/** What the thread sends once the disk has failed a commit, before the outcomes of that commit. */
export interface DiskFailed {
  diskFailure: unknown;
}

/** Does the write inside the transaction that is open. A refusal has changed nothing. */
export function apply({ plants, tokens }: Tables, write: Write): WriteResults[WriteKind] {
  switch (write[0]) {
    case 'create': {
      const [, store, owner, id, name, tag] = write;
      return plants.create(store, owner, { id, name, tag });
    }
    case 'delete': {
      const [, store, reach, id] = write;
      return plants.delete(store, reach, id);
    }
    case 'createToken':
      return tokens.create(write[1]);
    case 'revokeToken':
      return tokens.revoke(write[1], write[2]);
  }
}
