/**
 * The messages between the Writer and its thread. They are plain data, because they are copied from one thread
 * to the other.
 */
import type { ChangeReach } from '../../access/access.ts';
import type { Change, Creation, Update } from '../../plants/changes.ts';
import { textFields, withTexts } from '../../plants/fields.ts';
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
type PackedChange = readonly ['change', ...values: unknown[]];

/** What the changes of all kinds have. */
type Members = Record<keyof Creation | keyof Update, unknown>;

export function pack(change: Change): PackedChange {
  const all: Partial<Members> = change;
  const { kind, store, request, id, owner, condition, key } = all;
  const reach = 'reach' in change ? packReach(change.reach) : undefined;
  const texts = textFields.map((field) => all[field]);
  const by = change.by ?? [];
  return ['change', kind, store, request, id, owner, reach, condition, key, ...texts, ...by];
}

export function unpack(packed: PackedChange): Change {
  const [, kind, store, request, id, owner, packedReach, condition, key, ...others] = packed;
  const reach = typeof packedReach === 'number' ? [[packedReach], [packedReach]] : packedReach;
  const by = others.length > textFields.length ? others.slice(textFields.length) : undefined;
  const own = { kind, store, by, request, id, owner, reach, condition, key };
  const members: Members = withTexts(own, (_, at) => others[at]);
  return members as Partial<Members> as Change; // as it was before `pack`
}

/** Usually the only owner in reach. */
function packReach(reach: ChangeReach): ChangeReach | number | undefined {
  const [read, write] = reach;
  const isOneOwner = read === write && read !== 'all' && read.length === 1;
  return isOneOwner ? read[0] : reach;
}

/** `sentMs` is when they were sent, by nowMs(). */
export interface Batch {
  sentMs: number;
  writes: readonly Write[];
}

/** The start data of the thread (`workerData`). */
export type ThreadData = Pick<ConnectionSettings, 'path' | 'fileId' | 'quotas' | 'keepChangesMs'>;

/** For each batch of a commit, in the order of their arrival: the result of each write, or its Failure. */
export type Outcomes = readonly (readonly unknown[])[];

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
