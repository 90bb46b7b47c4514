/**
 * The messages between the Writer and its thread. They are plain data, because they are copied from one thread
 * to the other.
 */
import type { ChangeReach, Identified } from '../../access/access.ts';
import type { Change } from '../../plants/changes.ts';
import type { Condition } from '../../plants/condition.ts';
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

/** A change as a flat tuple: of objects, most of the cost would be copying their keys. */
type PackedChange =
  | readonly [
      'create',
      ...Head,
      id: number | undefined,
      owner: number,
      name: string,
      tag: string,
      key: CreateKey | undefined,
      ...by: Identified,
    ]
  | readonly [
      'update',
      ...Head,
      ...Target,
      condition: Condition | undefined,
      name: string | undefined,
      tag: string | undefined,
      ...by: Identified,
    ]
  | readonly ['delete', ...Head, ...Target, condition: Condition | undefined, ...by: Identified]
  | readonly ['restore', ...Head, ...Target, ...by: Identified];
type Head = readonly [store: number, request: string | undefined];
type Target = readonly [id: number, reach: PackedReach];
/** Usually the only owner in reach. */
type PackedReach = ChangeReach | number;

export function pack(change: Change): PackedChange {
  const { kind, store, by, request } = change;
  switch (kind) {
    case 'create': {
      const { id, owner, name, tag, key } = change;
      return [kind, store, request, id, owner, name, tag, key, ...by];
    }
    case 'update': {
      const { id, reach, condition, name, tag } = change;
      return [kind, store, request, id, packReach(reach), condition, name, tag, ...by];
    }
    case 'delete':
      return [kind, store, request, change.id, packReach(change.reach), change.condition, ...by];
    case 'restore':
      return [kind, store, request, change.id, packReach(change.reach), ...by];
  }
}

export function unpack(packed: PackedChange): Change {
  switch (packed[0]) {
    case 'create': {
      const [kind, store, request, id, owner, name, tag, key, ...by] = packed;
      return { kind, store, by, request, id, owner, name, tag, key };
    }
    case 'update': {
      const [kind, store, request, id, reach, condition, name, tag, ...by] = packed;
      return { kind, store, by, request, id, reach: unpackReach(reach), condition, name, tag };
    }
    case 'delete': {
      const [kind, store, request, id, reach, condition, ...by] = packed;
      return { kind, store, by, request, id, reach: unpackReach(reach), condition };
    }
    case 'restore': {
      const [kind, store, request, id, reach, ...by] = packed;
      return { kind, store, by, request, id, reach: unpackReach(reach) };
    }
  }
}

function packReach(reach: ChangeReach): PackedReach {
  const [read, write] = reach;
  const isOneOwner = read === write && read !== 'all' && read.length === 1;
  return isOneOwner ? (read[0] ?? reach) : reach;
}

function unpackReach(packed: PackedReach): ChangeReach {
  return typeof packed === 'number' ? [[packed], [packed]] : packed;
}

/** Writes with consecutive sequence numbers. `sentMs` is when they were sent, by nowMs(). */
export interface Batch {
  sentMs: number;
  first: number;
  writes: readonly Write[];
}

/** The start data of the thread (`workerData`). */
export type ThreadData = Pick<ConnectionSettings, 'path' | 'fileId' | 'quotas' | 'keepChangesMs'>;

/** By the number of the first write of each batch: the results of its writes, or their Failures. */
export type Outcomes = ReadonlyMap<number, readonly unknown[]>;

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
