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
import type { Change, ChangeKind, ChangeResults, Creation, OfPlant, Update } from './changes.ts';
import { assertCondition } from './entity-tag.ts';
import { textFields, withTexts } from './fields.ts';
import { plantOfKey, type StoredKey } from './idempotency.ts';
import { assignId } from './ids.ts';
import type { OwnedPlant, StoredPlant } from './plant-storage.ts';
import { assertRoom, type PlantCounter, type Quotas } from './quota.ts';

/** The deletion of a plant whose id was not used again. */
export interface DeletionInLog {
  readonly position: number;
  /** Undefined if it cannot be restored: the deletion is too old, or the owner was removed since. */
  readonly plant: OwnedPlant | undefined;
}

/** What a decision depends on: a store at the time of the change. */
export interface Facts extends PlantCounter {
  /** That of the last change of the store. */
  readonly position: number;
  /** The largest id that the store has ever held. */
  readonly lastId: number;
  /**
   * What the caller can see and change now; undefined if that has not changed since they were identified. Throws `invalid-token` if
   * their token was revoked.
   */
  reachNow(by: Identified): ChangeReach | undefined;
  plant(id: number): StoredPlant | undefined;
  /** Asked only for ids that are free. */
  deletion(id: number): DeletionInLog | undefined;
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
  readonly before: StoredPlant | undefined;
  readonly after: StoredPlant | undefined;
  /** `lastId` and `position` of the facts after the change. */
  readonly lastId: number;
  readonly position: number;
  /** The position of the deletion of an earlier plant with this id, which cannot be restored any more. */
  readonly endedDeletion: number | undefined;
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
  const step = stepOf(change, facts);
  if ('result' in step) return step;
  const { event, before, after: plant, key } = step;
  const isNew = before === undefined;
  const isReturn = change.kind !== 'create' && change.condition?.follows !== undefined;
  if (isNew && !isReturn) assertRoom(quotas, plant.owner, facts);
  const { id } = isNew ? plant : before;
  const position = facts.position + 1;
  const endedDeletion = isNew && id <= facts.lastId ? facts.deletion(id)?.position : undefined;
  const after = plant && { ...plant, position };
  const created = { id, position, isReplay: false };
  const result = event === 'created' ? created : (after ?? position);
  const lastId = Math.max(facts.lastId, id);
  const effect = { id, before, after, lastId, position, endedDeletion, key };
  if (!hasLog) return { result, effect: { ...effect, entry: undefined } };
  const { by, request } = change;
  // The history of a plant begins with its creation, even if its id was used before.
  const previous = event === 'restored' ? endedDeletion : before?.position;
  const owner = before?.owner;
  const own = { position, previous, event, by, request, plant: id, owner, left: after };
  const entry = withTexts(own, (field) => before?.[field]);
  return { result, effect: { ...effect, entry } };
}

/** What a change does to its plant: there is one before or after it. */
type Step = { event: PlantEvent; key?: NewKey | undefined } & (
  { before: StoredPlant; after: OwnedPlant | undefined } | { before: undefined; after: OwnedPlant }
);

/**
 * If nothing changes, the position of the result is that of the store: at an earlier one, a copy can lack a plant that was
 * shared since.
 */
function stepOf(change: Change, facts: Facts): Step | Decision {
  const reachNow = change.by && facts.reachNow(change.by);
  if (change.kind === 'create') return create(change, facts);
  const { id, condition } = change;
  if (
    condition?.follows !== undefined &&
    condition.follows !== (facts.plant(id) ?? facts.deletion(id))?.position
  ) {
    return { result: undefined };
  }
  const reach = reachNow ?? change.reach;
  switch (change.kind) {
    case 'update':
      return update(change, find(change, reach, facts), facts);
    case 'delete':
      return remove(find(change, reach, facts));
    case 'restore':
      return restore(id, reach, facts);
  }
}

function create(creation: Creation, facts: Facts): Step | Decision {
  const { owner, id: wanted, key } = creation;
  const { lastId, position } = facts;
  const earlier = key && facts.key(owner, key[0]);
  if (key && earlier) return { result: { id: plantOfKey(earlier, key), position, isReplay: true } };
  const id = wanted ?? assignId(lastId, () => facts.randomFreeId());
  if (id <= lastId && facts.plant(id) !== undefined) throw idTaken(id);
  const stored = key && { user: owner, key: key[0], fingerprint: key[1], plant: id };
  const after = withTexts({ id, owner }, (field) => creation[field]);
  return { event: 'created', before: undefined, after, key: stored };
}

function update(
  change: Update,
  before: StoredPlant | undefined,
  { position }: Facts,
): Step | Decision {
  if (before === undefined) return { result: undefined };
  const { id, owner } = before;
  const after = withTexts({ id, owner }, (field) => change[field] ?? before[field]);
  const isSame = textFields.every((field) => after[field] === before[field]);
  return isSame ? { result: { ...after, position } } : { event: 'updated', before, after };
}

function remove(before: StoredPlant | undefined): Step | Decision {
  if (before === undefined) return { result: undefined };
  return { event: 'deleted', before, after: undefined };
}

function restore(id: number, reach: ChangeReach, facts: Facts): Step | Decision {
  const existing = facts.plant(id);
  const after = existing ?? facts.deletion(id)?.plant;
  if (after === undefined || !canChange(reach, after.owner)) return { result: undefined };
  if (existing !== undefined) throw idInUse(id);
  return { event: 'restored', before: undefined, after };
}

/** The plant if it is within reach. Throws `plant-read-only` or `precondition-failed`. */
function find(
  { id, condition }: OfPlant<ChangeKind>,
  reach: ChangeReach,
  facts: Facts,
): StoredPlant | undefined {
  const plant = facts.plant(id);
  if (plant === undefined || !canChange(reach, plant.owner)) return undefined;
  assertCondition(condition, plant);
  return plant;
}
