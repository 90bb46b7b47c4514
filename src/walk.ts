/**
 * Lists that no index holds: the plants in reach are walked over in steps, each of a bounded cost, and the
 * event loop is free between two.
 */
import { pageOf, type PlantRow } from './lists.ts';
import type { PlantPage, PlantQuery } from './plant-storage.ts';

/** What one step has found. */
export interface Step {
  /** As in PlantPage. */
  json: string;
  plants: number;
  /** The id of the last of them, if they are as many as were asked for. */
  last: number | undefined;
  /** Others of the list follow within this step. */
  moreFollow: boolean;
  /** The id after which the next step begins; undefined at the end of the reach. */
  walkedTo: number | undefined;
}

type Range = Pick<PlantQuery, 'after' | 'limit'>;

/** The page of a list, put together from what the steps find. */
export async function walk(
  { after, limit, isGone }: PlantQuery,
  step: (range: Range) => Promise<Step>,
): Promise<PlantPage> {
  const found: string[] = [];
  let left = limit;
  let last: number | undefined;
  for (let from: number | undefined = after; from !== undefined;) {
    if (isGone?.() === true) break;
    // A page that is full needs to know whether another plant follows.
    const { json, plants, ...its }: Step = await step({ after: from, limit: Math.max(left, 1) });
    if (left === 0 && plants > 0) return { json: found.join(), next: last };
    if (plants > 0) found.push(json);
    left -= plants;
    ({ last = last } = its);
    if (its.moreFollow) return { json: found.join(), next: last };
    from = its.walkedTo;
  }
  return { json: found.join(), next: undefined };
}

/** `rows` are those of the step that are in the list, or the first of them, one more than `limit`. */
export function stepOf(
  rows: readonly PlantRow[],
  query: PlantQuery,
  walkedTo: number | undefined,
): Step {
  const { limit } = query;
  return {
    json: pageOf(rows, query).json,
    plants: Math.min(rows.length, limit),
    last: rows[limit - 1]?.[0],
    moreFollow: rows.length > limit,
    walkedTo,
  };
}
