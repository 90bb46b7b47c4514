import { setTimeout as pause } from 'node:timers/promises';
import { plantEvents } from '../log/change-log.ts';
import { hasOtherTexts, type Difference, type Outcome } from '../log/differences.ts';
import { textsOf, type Texts } from '../plants/fields.ts';
import type { StoredPlant } from '../plants/plant-storage.ts';
import type { Storage } from '../storage.ts';
import type { ChangeAccess } from './access.ts';
import { batchPauseMs, batchRows } from './remove-user.ts';

/** What is shown of a plant that is put back. */
export interface PutBack {
  id: number;
  outcome: Outcome;
  now: Texts | undefined;
  before: Texts | undefined;
}

export function shownOf({ id, outcome, now, before }: Difference): PutBack {
  return { id, outcome, now: now && textsOf(now), before: before && textsOf(before) };
}

export function isPossible({ outcome }: Pick<PutBack, 'outcome'>): boolean {
  return plantEvents.some((event) => event === outcome);
}

/** Puts plants back, in batches, between which others write. Leaves a plant that has changed meanwhile. */
export async function putBackAll(
  { plants, users }: Pick<Storage, 'plants' | 'users'>,
  caller: ChangeAccess,
  differences: readonly Difference[],
  request?: string,
): Promise<PutBack[]> {
  const author = { by: caller.identified, request };
  const result: PutBack[] = [];
  for (let at = 0; at < differences.length; at += batchRows) {
    const batch = differences.slice(at, at + batchRows).map(async (difference) => {
      return [difference, await change(plants, caller, difference, request)] as const;
    });
    for (const [difference, left] of await Promise.all(batch)) {
      const { store } = caller;
      const { owner } = difference.before ?? {};
      let isDone = left !== undefined;
      // One after the other: each is a transaction.
      if (typeof left === 'object' && owner !== undefined && owner !== left.owner) {
        const { position: since = 0 } = difference.now ?? difference.deletion ?? {};
        const from = { store, user: left.owner };
        isDone = (await users.movePlants(from, owner, 1, author, { ...left, since })) > 0;
      }
      result.push({ ...shownOf(difference), ...(!isDone && { outcome: 'changed-meanwhile' }) });
    }
    await pause(batchPauseMs);
  }
  return result;
}

/**
 * A plant that was changed and then deleted comes back as it was deleted, and then gets the texts that it had before. Resolves
 * to the plant, which can still have another owner, to a number if there is none, and to undefined if it has changed meanwhile.
 */
async function change(
  plants: Storage['plants'],
  caller: ChangeAccess,
  difference: Difference,
  request: string | undefined,
): Promise<StoredPlant | number | undefined> {
  if (!isPossible(difference)) return 0;
  const { id, before, now, deletion } = difference;
  const after = (follows = 0) => ({ condition: { follows }, request });
  if (before === undefined) return plants.delete(caller, id, after(now?.position));
  const found = now ?? (await plants.restore(caller, id, after(deletion?.position)));
  if (found === undefined || !hasOtherTexts(before, found)) return found;
  return plants.update(caller, id, textsOf(before), after(found.position));
}
