/**
 * The messages between the Writer and its thread. They are plain data, because they are copied from one thread
 * to the other.
 */
import type { Change, ChangeResults } from '../../plants/changes.ts';
import type { ProblemKind } from '../../problem.ts';
import type { ConnectionSettings } from '../connection.ts';
import type { Call } from '../tables/tables.ts';

export type Write = Change | Call;
export type ResultOf<W extends Write> = W extends Change ? ChangeResults[W[0]] : unknown;

/** Writes by sequence number. `sentMs` is when they were sent, by nowMs(). */
export interface Batch {
  sentMs: number;
  writes: ReadonlyMap<number, Write>;
}

/** The start data of the thread (`workerData`). */
export type ThreadData = Pick<ConnectionSettings, 'path' | 'fileId' | 'quotas' | 'keepChangesMs'>;

/** By the sequence number of the write: its result, or a Failure. */
export type Outcomes = ReadonlyMap<number, unknown>;

/** A Problem as plain data. */
export interface Failure {
  problem: { kind: ProblemKind; detail: string; scope?: string | undefined; cause?: unknown };
}

export function isFailure(outcome: unknown): outcome is Failure {
  return typeof outcome === 'object' && outcome !== null && 'problem' in outcome;
}

/** After a failed sync, the thread sends this behind the outcomes of each commit. */
export interface DiskFailed {
  diskFailure: unknown;
}
