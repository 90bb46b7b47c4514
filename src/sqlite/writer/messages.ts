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

/** A change as a flat tuple: of objects, most of the cost would be copying their keys. */
type PackedChange =
  | readonly [
      'create',
      ...Head,
      id: number | undefined,
      owner: number,
      key: CreateKey | undefined,
      ...texts: string[],
    ]
  | readonly [
      'update' | 'delete' | 'restore',
      ...Head,
      id: number,
      reach: PackedReach,
      condition: Condition | undefined,
      ...texts: (string | undefined)[],
    ];
/** Of a caller without claims, a place for them: what follows has any number of members. */
type Head = readonly [
  store: number,
  request: string | undefined,
  version: number,
  tokenHash: string,
  user: number,
  tokenId: string,
  claims: Identified[4],
];
/** Usually the only owner in reach. */
type PackedReach = ChangeReach | number;

export function pack(change: Change): PackedChange {
  const { kind, store, request } = change;
  const [version, tokenHash, user, tokenId, claims] = change.by;
  const head = [store, request, version, tokenHash, user, tokenId, claims] as const;
  if (kind === 'create') {
    const { id, owner, key } = change;
    return [kind, ...head, id, owner, key, ...textValues(change)];
  }
  const { id, reach, condition } = change;
  const texts = kind === 'update' ? textValues(change) : [];
  return [kind, ...head, id, packReach(reach), condition, ...texts];
}

export function unpack(packed: PackedChange): Change {
  const [, store, request, version, tokenHash, user, tokenId, claims] = packed;
  const by = [version, tokenHash, user, tokenId, claims] as const;
  if (packed[0] === 'create') {
    const [kind, , , , , , , , id, owner, key, ...values] = packed;
    const creation = { kind, store, by, request, id, owner, key };
    return withTexts(creation, (_, at) => values[at] ?? '');
  }
  const [kind, , , , , , , , id, packedReach, condition, ...values] = packed;
  const reach = unpackReach(packedReach);
  return withTexts({ kind, store, by, request, id, reach, condition }, (_, at) => values[at]);
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
