/**
 * The rules of a change to a plant, for both engines: who can make it, its condition, its id, the quotas, the idempotency
 * key and the entry in the log.
 *
 * Facts come in and an effect goes out, and nothing else is read or written. So an engine can ask its tables as facts are
 * needed, or read ahead, and it can write each effect at once, or those of many changes together. The facts for a change
 * include the effects of all changes before it in its transaction: a group has the outcomes of its changes one by one.
 */
import { canChange, type ChangeReach, type Identified } from '../access/access.ts';
import type { LogEntry, PlantEvent } from '../log/change-log.ts';
import { idInUse, idTaken } from '../problem.ts';
import type { Change, ChangeKind, ChangeResults, Creation, Deletion, Update } from './changes.ts';
import { assertCondition } from './condition.ts';
import { plantOfKey, type StoredKey } from './idempotency.ts';
import { maxId } from './ids.ts';
import type { OwnedPlant } from './plant-storage.ts';
import { assertRoom, type PlantCounter, type Quotas } from './quota.ts';

/** What a decision depends on: a store at the time of the change. */
export interface Facts extends PlantCounter {
  /** The largest id that the store has ever held. */
  readonly lastId: number;
  /**
   * What the caller can see and change now; undefined if that has not changed since they were identified. Throws `invalid-token` if
   * their token was revoked.
   */
  reachNow(by: Identified): ChangeReach | undefined;
  plant(id: number): OwnedPlant | undefined;
  /** The plant whose deletion is the last change of the id in the log, unless its owner was removed since. */
  deleted(id: number): OwnedPlant | undefined;
  /** The create with this key of the user in the last 24 hours. */
  key(user: number, key: string): StoredKey | undefined;
  /** Asked if no id is left above `lastId`. */
  randomFreeId(): number;
}

/** What an operator has set. */
export interface Rules {
  readonly quotas: Quotas;
  readonly hasLog: boolean;
}

/** A key to store. */
export interface NewKey extends StoredKey {
  user: number;
  key: string;
}

/** What a change does to its store. */
export interface Effect {
  readonly id: number;
  /** The plant with this id before and after. */
  readonly before: OwnedPlant | undefined;
  readonly after: OwnedPlant | undefined;
  /** `Facts.lastId` after the change. */
  readonly lastId: number;
  readonly key: NewKey | undefined;
  readonly entry: LogEntry | undefined;
}

export interface Decision {
  readonly result: ChangeResults[ChangeKind];
  /** Undefined if nothing changes. */
  readonly effect?: Effect | undefined;
}

/** Throws the Problem of a change that is refused. */
export function decide(change: Change, facts: Facts, { quotas, hasLog }: Rules): Decision {
  const { result, step } = stepOf(change, facts, hasLog);
  if (step === undefined) return { result };
  const { event, before, after, key } = step;
  const isNew = before === undefined;
  if (isNew) assertRoom(quotas, after.owner, facts);
  const { id } = isNew ? after : before;
  const lastId = Math.max(facts.lastId, id);
  // Logged even without a log: later, neither history nor bin must show an earlier plant with the id.
  const isBorder = isNew && id <= facts.lastId;
  const { by, request } = change;
  const { owner, name, tag } = before ?? {};
  const isLogged = hasLog || isBorder;
  const entry = isLogged
    ? { event, by, request, plant: id, isBorder, owner, name, tag }
    : undefined;
  return { result, effect: { id, before, after, lastId, key, entry } };
}

/** What a change does to its plant: there is one before or after it. */
type Step = { event: PlantEvent; key?: NewKey | undefined } & (
  { before: OwnedPlant; after: OwnedPlant | undefined } | { before: undefined; after: OwnedPlant }
);

interface Outcome {
  result: Decision['result'];
  step?: Step;
}

function stepOf(change: Change, facts: Facts, hasLog: boolean): Outcome {
  const reachNow = facts.reachNow(change.by);
  if (change.kind === 'create') return create(change, facts);
  const reach = reachNow ?? change.reach;
  switch (change.kind) {
    case 'update':
      return update(change, find(change, reach, facts));
    case 'delete':
      return remove(find(change, reach, facts));
    case 'restore':
      return restore(change.id, reach, facts, hasLog);
  }
}

function create({ owner, id: wanted, name, tag, key }: Creation, facts: Facts): Outcome {
  const earlier = key && facts.key(owner, key[0]);
  if (key && earlier) return { result: { id: plantOfKey(earlier, key) } };
  const { lastId } = facts;
  const id = wanted ?? (lastId < maxId ? lastId + 1 : facts.randomFreeId());
  if (id <= lastId && facts.plant(id) !== undefined) throw idTaken(id);
  const stored = key && { user: owner, key: key[0], fingerprint: key[1], plant: id };
  const after = { id, name, tag, owner };
  return { result: id, step: { event: 'created', before: undefined, after, key: stored } };
}

function update({ name, tag }: Update, before: OwnedPlant | undefined): Outcome {
  if (before === undefined) return { result: undefined };
  const after = { ...before, name: name ?? before.name, tag: tag ?? before.tag };
  if (after.name === before.name && after.tag === before.tag) return { result: before };
  return { result: after, step: { event: 'updated', before, after } };
}

function remove(before: OwnedPlant | undefined): Outcome {
  if (before === undefined) return { result: false };
  return { result: true, step: { event: 'deleted', before, after: undefined } };
}

/** Without a log, nothing can be restored. */
function restore(id: number, reach: ChangeReach, facts: Facts, hasLog: boolean): Outcome {
  const existing = facts.plant(id);
  const last = existing ?? (hasLog ? facts.deleted(id) : undefined);
  if (last === undefined || !canChange(reach, last.owner)) return { result: undefined };
  if (existing !== undefined) throw idInUse(id);
  return { result: last, step: { event: 'restored', before: undefined, after: last } };
}

/** The plant if it is within reach. Throws `plant-read-only` or `precondition-failed`. */
function find(
  { id, condition }: Update | Deletion,
  reach: ChangeReach,
  facts: Facts,
): OwnedPlant | undefined {
  const plant = facts.plant(id);
  if (plant === undefined || !canChange(reach, plant.owner)) return undefined;
  assertCondition(condition, plant);
  return plant;
}
