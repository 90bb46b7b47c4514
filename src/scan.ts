/**
 * Lists that no index covers: the plants in reach are scanned in steps of bounded cost. The event loop is free
 * between two steps.
 */
import { pageOf, type PlantRow } from './lists.ts';
import type { PlantPage, PlantQuery } from './plant-storage.ts';

export interface Step {
  /** As in PlantPage. */
  json: string;
  plants: number;
  /** The id of the last plant, if the step found as many as it was asked for. */
  last: number | undefined;
  /** Whether this step has more plants of the list. */
  hasMore: boolean;
  /** The next step begins after this id; undefined at the end. */
  scannedTo: number | undefined;
}

type Range = Pick<PlantQuery, 'after' | 'limit'>;

/** Runs steps until the page is full and it is known whether another plant follows. */
export async function scan(
  { after, limit, isAborted }: PlantQuery,
  step: (range: Range) => Promise<Step>,
): Promise<PlantPage> {
  const found: string[] = [];
  let left = limit;
  let last: number | undefined;
  for (let from: number | undefined = after; from !== undefined;) {
    if (isAborted?.() === true) break;
    // If the page is full, one more plant shows that others follow.
    const { json, plants, ...rest }: Step = await step({ after: from, limit: Math.max(left, 1) });
    if (left === 0 && plants > 0) return { json: found.join(), next: last };
    if (plants > 0) found.push(json);
    left -= plants;
    ({ last = last } = rest);
    if (rest.hasMore) return { json: found.join(), next: last };
    from = rest.scannedTo;
  }
  return { json: found.join(), next: undefined };
}

/** `rows` are the plants of the list that the step found, up to `limit` + 1. */
export function stepOf(
  rows: readonly PlantRow[],
  query: PlantQuery,
  scannedTo: number | undefined,
): Step {
  const { limit } = query;
  return {
    json: pageOf(rows, query).json,
    plants: Math.min(rows.length, limit),
    last: rows[limit - 1]?.[0],
    hasMore: rows.length > limit,
    scannedTo,
  };
}
