/**
 * What has happened to the plants of a user since a time, from the log: the first change to a plant since then has what it
 * was before.
 */
import type { Identity } from '../access/access.ts';
import { plantOf, textFields, textValues, type Texts } from '../plants/fields.ts';
import type { OwnedPlant, StoredPlant } from '../plants/plant-storage.ts';
import { Refusal } from '../refusal.ts';
import {
  maxFollowed,
  maxPosition,
  type ChangeLog,
  type FollowedChange,
  type PlantEvent,
} from './change-log.ts';

/** A change is found if the clocks of the processes that made it and those before it differ by less. */
const maxClockDifferenceMs = 60 * 60 * 1_000;

/** A plant that the user owned at the time or owns now. */
export interface Difference {
  readonly id: number;
  readonly before: OwnedPlant | undefined;
  readonly now: StoredPlant | undefined;
  /** The last deletion since. */
  readonly deletion: { readonly position: number; readonly owner: number } | undefined;
  /** What puts it back, or why nothing can. */
  readonly outcome: Outcome;
}
export type Outcome =
  | Exclude<PlantEvent, 'created'>
  | 'changed-meanwhile'
  | 'id-used-again'
  | 'owner-removed'
  | 'not-in-log';

/** A position before all changes since a time. Bisects the log: positions are in the order of time, except that clocks differ. */
export async function positionBefore(
  log: Pick<ChangeLog, 'list'>,
  store: string,
  timeMs: number,
): Promise<number> {
  const sinceMs = timeMs - maxClockDifferenceMs;
  let [low, high] = [0, maxPosition];
  while (low < high) {
    const after = Math.floor((low + high) / 2);
    const { changes, next } = await log.list({ store, after, sinceMs, limit: 1 });
    const isEarlier = changes.length === 0 && next !== undefined;
    if (isEarlier) low = after + 1;
    else high = after;
  }
  return low - 1;
}

/**
 * Reads the log in steps, from a position on that is known to be before the time. An earlier user of the same name is another
 * person, so nothing from before the removal of a user counts. Throws Refusal if the log lacks a change since the time.
 * `check` gets the number of plants found so far, and can throw.
 */
export async function differencesSince(
  log: Pick<ChangeLog, 'follow'>,
  user: Identity,
  sinceMs: number,
  from: number,
  check: (plants: number) => void = () => {},
): Promise<Difference[]> {
  const found = new Map<number, Found>();
  const removedUsers = new Set<number>();
  let since = Infinity;

  function add({
    position,
    plant: id,
    previous = 0,
    event,
    ownerBefore: owner,
    now,
    ...change
  }: FollowedChange): void {
    if (event === 'user-removed' && owner !== undefined) removedUsers.add(owner);
    if (id === undefined) return;
    let known = found.get(id);
    if (known === undefined) {
      if (previous >= since) return; // not the first change since
      const texts = textValues(change).map((text) => text ?? '');
      const before = owner === undefined ? undefined : plantOf(id, owner, texts);
      if (before?.owner !== user.user && now?.owner !== user.user) return;
      known = { id, before, now, deletion: undefined, isReused: false };
      found.set(id, known);
    } else if (event === 'created') {
      known.isReused = true;
      if (known.before?.owner !== user.user) known.before = undefined; // so it is only a new plant
    }
    if (event === 'deleted' && owner !== undefined) known.deletion = { position, owner };
  }

  let next = Math.max(1, from);
  let hasPrevious = next === 1;
  for (let last = next; next <= last;) {
    check(found.size);
    const step = await log.follow(user, next);
    ({ last } = step);
    for (const change of step.changes) {
      const { position, atMs } = change;
      if (since < Infinity || (atMs >= sinceMs && position > step.removedPosition)) {
        if (!hasPrevious || position !== next) throw notKept(atMs);
        since = Math.min(since, position);
        add(change);
      }
      [next, hasPrevious] = [position + 1, true];
    }
    if (step.changes.length === 0 && next <= last) {
      [next, hasPrevious] = [next + maxFollowed + 1, false];
    }
  }
  check(found.size);
  if (!hasPrevious) throw notKept();
  return [...found.values()].filter(isDifferent).map((plant) => {
    return { ...plant, outcome: outcomeOf(plant, removedUsers) };
  });
}

/** A plant that has changed since, as far as the log was read. */
interface Found {
  readonly id: number;
  readonly now: StoredPlant | undefined;
  before: OwnedPlant | undefined;
  deletion: Difference['deletion'];
  /** Whether its id was used again. */
  isReused: boolean;
}

function isDifferent({ before, now }: Found): boolean {
  if (before === undefined || now === undefined) return true;
  return before.owner !== now.owner || hasOtherTexts(before, now);
}

export function hasOtherTexts(before: Texts, now: Texts): boolean {
  return textFields.some((field) => before[field] !== now[field]);
}

function outcomeOf(
  { before, now, deletion, isReused }: Found,
  removedUsers: ReadonlySet<number>,
): Outcome {
  const lastOwner = (now ?? deletion)?.owner;
  const isRemoved = (user = NaN) => removedUsers.has(user);
  if (before === undefined) return 'deleted';
  if (isReused && lastOwner !== before.owner) return 'id-used-again';
  // The bin has no plants of a removed user.
  if (isRemoved(before.owner) || (now === undefined && isRemoved(lastOwner)))
    return 'owner-removed';
  if (now !== undefined) return now.owner === before.owner ? 'updated' : 'moved';
  return lastOwner === undefined ? 'not-in-log' : 'restored';
}

function notKept(firstMs?: number): Refusal {
  const advice =
    firstMs === undefined
      ? 'It has no changes of this store.'
      : `The earliest possible time is ${new Date(firstMs + 1).toISOString()}.`;
  return new Refusal(`The log does not have all changes since this time. ${advice}`);
}
