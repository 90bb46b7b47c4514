/**
 * The messages between the Writer and its thread. They are plain data, because they are copied from one thread
 * to the other.
 */
import type { ChangeReach, Identified } from '../../access/access.ts';
import type { Change } from '../../plants/changes.ts';
import type { Condition } from '../../plants/condition.ts';
import { textValues, withTexts } from '../../plants/fields.ts';
import type { CreateKey } from '../../plants/idempotency.ts';
import type { ProblemKind } from '../../problem.ts';
import type { ConnectionSettings } from '../connection.ts';
import type { Writes } from '../../sql/named-writes.ts';

/** A change to a plant, the name and the arguments of another write, or one that only this engine has. */
export type Write = PackedChange | Call | OwnWrite;

/** The write of `sql/` with this name. */
export type Call = {
  [Name in keyof Writes]: readonly ['call', name: Name, ...args: Parameters<Writes[Name]>];
}[keyof Writes];

type OwnWrite = readonly ['add-store', name: string] | readonly ['touch', store: number];

/** A change as a tuple: of an object, most of the cost would be copying its keys. */
type PackedChange =
  | readonly [
      'create',
      ...Author,
      id: number | undefined,
      owner: number,
      key: CreateKey | undefined,
      ...texts: string[],
    ]
  | readonly [
      'update' | 'delete' | 'restore',
      ...Author,
      id: number,
      reach: ChangeReach,
      condition: Condition | undefined,
      ...texts: (string | undefined)[],
    ];
type Author = readonly [store: number, by: Identified, request: string | undefined];

export function pack(change: Change): PackedChange {
  const { kind, store, by, request } = change;
  if (kind === 'create') {
    const { id, owner, key } = change;
    return [kind, store, by, request, id, owner, key, ...textValues(change)];
  }
  const { id, reach, condition } = change;
  const texts = kind === 'update' ? textValues(change) : [];
  return [kind, store, by, request, id, reach, condition, ...texts];
}

export function unpack(packed: PackedChange): Change {
  const [, store, by, request] = packed;
  if (packed[0] === 'create') {
    const [kind, , , , id, owner, key, ...values] = packed;
    const creation = { kind, store, by, request, id, owner, key };
    return withTexts(creation, (_, at) => values[at] ?? '');
  }
  const [kind, , , , id, reach, condition, ...values] = packed;
  const change = { kind, store, by, request, id, reach, condition };
  return withTexts(change, (_, at) => values[at]);
}

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

/** The thread sends this once, if a sync has failed. */
export interface DiskFailed {
  diskFailure: unknown;
}
