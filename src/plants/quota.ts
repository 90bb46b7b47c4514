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

/** Undefined if there is room for another plant. `count` returns at least the quota if there are more plants. */
export function quotaProblem(
  { perUser, perStore }: Quotas,
  count: (scope: 'user' | 'store', quota: number) => number,
): Problem | undefined {
  if (perUser !== undefined && count('user', perUser) >= perUser) {
    return quotaExceeded('A user of this service can own', perUser, 'that you own');
  }
  if (perStore !== undefined && count('store', perStore) >= perStore) {
    return quotaExceeded('A store of this service can have', perStore, 'of the store');
  }
  return undefined;
}

function quotaExceeded(who: string, quota: number, which: string): Problem {
  const plants = quota === 1 ? '1 plant' : `${quota} plants`;
  const advice = `Delete plants ${which}, or ask the operator for a higher limit.`;
  return new Problem('quota-exceeded', `${who} at most ${plants}. ${advice}`);
}
