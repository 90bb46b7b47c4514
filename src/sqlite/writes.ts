/**
 * The messages between the Writer and its thread. They are plain data, because they are copied from one thread
 * to the other.
 */
import type { Change, ChangeResults } from '../changes.ts';
import type { Identified, Identity } from '../access.ts';
import type { CreatedToken, NewToken, TokenRecord, TokenUse } from '../identity-storage.ts';
import type { OwnToken, Revoker } from '../own-tokens.ts';
import type { ProblemKind } from '../problem.ts';
import type { Quotas } from '../quota.ts';
import type { Tables } from './connection.ts';
import type { Share, ShareEnds } from '../share-storage.ts';
import type { FileId } from './open-file.ts';
import type { Creator } from './own-tokens.ts';

export type Write =
  | Change
  | readonly ['createToken', token: NewToken]
  | readonly ['createUser', store: string, user: string, issuedAtMs: number]
  | readonly ['createOwnToken', by: Creator, token: OwnToken]
  | readonly ['revokeToken', id: string, revokedAtMs: number, by: Revoker | undefined]
  | readonly ['recordUses', uses: readonly TokenUse[]]
  | readonly ['endAccess', user: Identity, revokedAtMs: number, limit: number]
  | readonly ['movePlants', from: Identity, to: number, limit: number]
  | readonly ['removeUser', user: Identity, removedAtMs: number]
  | readonly ['share', store: number, share: Share, sinceMs: number, by: Identified | undefined]
  | readonly ['unshare', store: number, ends: readonly ShareEnds[], by: Identified | undefined];

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
  quotas: Quotas | undefined;
  /** One BigInt64, which outlives the thread: the sequence number of the last write that it has started. */
  lastStarted: SharedArrayBuffer;
}

/** What each kind of write resolves to. */
export interface WriteResults extends ChangeResults {
  createToken: CreatedToken;
  createUser: void;
  createOwnToken: void;
  revokeToken: TokenRecord | undefined;
  recordUses: void;
  endAccess: number;
  movePlants: number;
  removeUser: boolean;
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
export function apply(tables: Tables, write: Write): WriteResults[WriteKind] {
  const { plants, tokens } = tables;
  switch (write[0]) {
    case 'create': {
      const [, store, owner, id, name, tag, by] = write;
      tokens.callerSince(by);
      return plants.create(store, owner, { id, name, tag });
    }
    case 'delete': {
      const [, store, reach, id, by] = write;
      return plants.delete(store, tokens.callerSince(by)?.write ?? reach, id);
    }
    default: {
      const result = applyOther(tables, write);
      tokens.clearVersion();
      return result;
    }
  }
}

function applyOther(
  { tokens, ownTokens, users, shares }: Tables,
  write: Exclude<Write, Change>,
): WriteResults[WriteKind] {
  switch (write[0]) {
    case 'createToken':
      return tokens.create(write[1]);
    case 'createUser':
      return tokens.createUser(write[1], write[2], write[3]);
    case 'revokeToken':
      tokens.callerSince(write[3]?.identified);
      return tokens.revoke(write[1], write[2], write[3]);
    case 'createOwnToken':
      tokens.callerSince(write[1].identified);
      return ownTokens.create(write[1], write[2]);
    case 'recordUses':
      return ownTokens.recordUses(write[1]);
    case 'endAccess':
      return users.endAccess(write[1], write[2], write[3]);
    case 'movePlants':
      return users.movePlants(write[1], write[2], write[3]);
    case 'removeUser':
      return users.remove(write[1], write[2]);
    case 'share':
      tokens.callerSince(write[4]);
      return shares.set(write[1], write[2], write[3]);
    case 'unshare':
      tokens.callerSince(write[3]);
      return shares.end(write[1], write[2]);
  }
}
