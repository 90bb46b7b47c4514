/**
 * The messages between the Writer and its thread. They are plain data, because they are copied from one thread
 * to the other.
 */
import type { Change, ChangeResults } from '../changes.ts';
import type { NewToken, TokenRecord } from '../identity-storage.ts';
import type { ProblemKind } from '../problem.ts';
import type { Tables } from './connection.ts';
import type { Share, ShareEnds } from '../share-storage.ts';
import type { FileId } from './open-file.ts';

export type Write =
  | Change
  | readonly ['createToken', token: NewToken]
  | readonly ['revokeToken', id: string, revokedAtMs: number]
  | readonly ['share', store: number, share: Share, sinceMs: number]
  | readonly ['unshare', store: number, ends: readonly ShareEnds[]];

export type WriteKind = Write[0];

/** Writes by sequence number. `sentMs` is when they were sent, by nowMs(). */
export interface Batch {
  sentMs: number;
  writes: ReadonlyMap<number, Write>;
}

/** The start data of the thread (`workerData`). */
export interface ThreadData {
  path: string;
  /** The file that the connection for reads has open. */
  fileId: FileId;
  /** One BigInt64, which outlives the thread: the sequence number of the last write that it has started. */
  lastStarted: SharedArrayBuffer;
}

/** What each kind of write resolves to. */
export interface WriteResults extends ChangeResults {
  createToken: void;
  revokeToken: TokenRecord | undefined;
  share: boolean;
  unshare: boolean;
}

export type Outcome = WriteResults[WriteKind] | Failure;

/** Outcomes by the sequence number of the write. */
export type Outcomes = ReadonlyMap<number, Outcome>;

/** A Problem as plain data. */
export interface Failure {
  problem: { kind: ProblemKind; detail: string; cause?: unknown };
}

export function isFailure(outcome: Outcome): outcome is Failure {
  return typeof outcome === 'object' && 'problem' in outcome;
}

/** After a failed sync, the thread sends this before the outcomes of every later commit. */
export interface DiskFailed {
  diskFailure: unknown;
}

/** Runs the write in the open transaction. If it throws a Problem, it has changed nothing. */
export function apply({ plants, tokens, shares }: Tables, write: Write): WriteResults[WriteKind] {
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
    case 'share':
      return shares.set(write[1], write[2], write[3]);
    case 'unshare':
      return shares.end(write[1], write[2]);
  }
}
