import { Problem } from '../problem.ts';

/**
 * How many plants a user can own and a store can have; undefined for no limit. Quotas limit only creates: if more
 * plants exist, all remain. Each engine counts in the transaction of the create, and all processes that serve a
 * database must have the same quotas.
 */
export interface Quotas {
  readonly perUser: number | undefined;
  readonly perStore: number | undefined;
}

export const noQuotas: Quotas = { perUser: undefined, perStore: undefined };

export interface PlantCounter {
  /** The number of plants of the owner, or of the store if that is undefined. Inexact far above the quota. */
  count(owner: number | undefined, quota: number): number;
}

/** Throws `quota-exceeded` if there is no room for another plant of the owner. */
export function assertRoom(
  { perUser, perStore }: Quotas,
  owner: number,
  plants: PlantCounter,
): void {
  if (perUser !== undefined && plants.count(owner, perUser) >= perUser)
    throw quotaExceeded('A user of this service can own', perUser, 'that you own');
  if (perStore !== undefined && plants.count(undefined, perStore) >= perStore)
    throw quotaExceeded('A store of this service can have', perStore, 'of the store');
}

function quotaExceeded(who: string, quota: number, which: string): Problem {
  const plants = quota === 1 ? '1 plant' : `${quota} plants`;
  const advice = `Delete plants ${which}, or ask the operator for a higher limit.`;
  return new Problem('quota-exceeded', `${who} at most ${plants}. ${advice}`);
}
