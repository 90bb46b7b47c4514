import { setTimeout as pause } from 'node:timers/promises';
import type { Differences, PutBack } from '../log/differences.ts';
import type { Storage } from '../storage.ts';
import { batchPauseMs, batchRows } from './remove-user.ts';
import type { Author } from './user-storage.ts';

/**
 * Puts plants back in batches, between which others write. In a trial, it only finds out what that would do. Without plants,
 * the author is still identified again.
 */
export async function putBackAll(
  { users }: Pick<Storage, 'users'>,
  store: number,
  { since, plants }: Differences,
  isTrial: boolean,
  author?: Author,
): Promise<PutBack[]> {
  const result: PutBack[] = [];
  let at = 0;
  do {
    const batch = { since, plants: plants.slice(at, at + batchRows) };
    result.push(...(await users.putBack(store, batch, isTrial, author)));
    at += batchRows;
    await pause(batchPauseMs);
  } while (at < plants.length);
  return result;
}
