import { setTimeout as pause } from 'node:timers/promises';
import type { Storage } from '../storage.ts';
import { operatorOf, type Identity } from './access.ts';
import type { Author } from './user-storage.ts';

/** Plants or shares in one transaction, which takes a few milliseconds. */
export const batchRows = 500;
/** Between two batches, for the writes of others: a process that waits for an SQLite file polls for its lock. */
export const batchPauseMs = 5;

export async function ownsPlants({ plants }: Storage, user: Identity): Promise<boolean> {
  const ofUser = operatorOf(user.store, [user.user]);
  const { json } = await plants.list(ofUser, { after: 0, limit: 1, fields: ['id'] });
  return json !== '';
}

/**
 * Removes a user: revokes their tokens, ends their shares, and gives their plants to another user. `findHeir` is called
 * again in each round, and throws if there is no heir and one is needed. Resolves to the number of plants.
 *
 * Each step can be repeated, so another call continues an interrupted one. It also gives away a plant that arrived after the
 * removal of its owner. `assertWanted` is called before each batch of plants: two processes that remove two users who get the
 * plants of each other would move them forever. A store is never left without managers by one of them (`last-manager`).
 */
export async function removeUser(
  { users }: Storage,
  user: Identity,
  findHeir: () => Promise<Identity | undefined>,
  author?: Author,
  assertWanted = () => {},
): Promise<number> {
  if (author !== undefined) await users.beginRemoval(user, author);
  let moved = 0;
  // Repeats if a plant or a share was added meanwhile, or if the heir was removed.
  do {
    const heir = await findHeir();
    await inBatches(() => users.endAccess(user, Date.now(), batchRows, author));
    if (heir !== undefined) {
      moved += await inBatches(() => {
        assertWanted();
        return users.movePlants(user, heir.user, batchRows, author);
      });
    }
  } while (!(await users.remove(user, Date.now(), author)));
  return moved;
}

/** Forgets a removed user, or continues that. Resolves to false if the user has access again, or plants. */
export async function forgetUser(
  { users }: Storage,
  user: Identity,
  name: string,
): Promise<boolean> {
  for (let from: number | undefined = 1; from !== undefined; await pause(batchPauseMs)) {
    const step: { next?: number } | undefined = await users.forget(user, name, from, batchRows);
    if (step === undefined) return false;
    from = step.next;
  }
  return true;
}

/** Repeats `change` until it changes nothing. Returns the number of changes. */
async function inBatches(change: () => Promise<number>): Promise<number> {
  for (let total = 0; ; await pause(batchPauseMs)) {
    const changed = await change();
    if (changed === 0) return total;
    total += changed;
  }
}
