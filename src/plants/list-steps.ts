/**
 * Lists that no index covers: the plants in reach are scanned in steps of bounded cost. The event loop is free
 * between two steps.
 */
import { pageOf, type LongerPlantRow } from './lists.ts';
import type { PlantPage, PlantQuery } from './plant-storage.ts';

export interface ScanStep {
  /** As in PlantPage. */
  json: string;
  plantCount: number;
  /** The id of the last plant, if the step found `limit` plants. */
  last: number | undefined;
  /** Whether the step found more plants than `limit`. */
  hasMore: boolean;
  /** The next step begins after this id; undefined at the end. */
  scannedTo: number | undefined;
}

type Range = Pick<PlantQuery, 'after' | 'limit'>;

/** Runs steps until the page is full and it is known whether another plant follows. */
export async function scan(
  { after, limit, assertWanted = () => {} }: PlantQuery,
  step: (range: Range) => Promise<ScanStep>,
): Promise<PlantPage> {
  const found: string[] = [];
  let left = limit;
  let last: number | undefined;
  for (let from: number | undefined = after; from !== undefined;) {
    assertWanted();
    // If the page is full, the scan continues for one more plant, to determine whether others follow.
    const { json, plantCount, ...rest }: ScanStep = await step({
      after: from,
      limit: Math.max(left, 1),
    });
    if (left === 0 && plantCount > 0) return { json: found.join(), next: last };
    if (plantCount > 0) found.push(json);
    left -= plantCount;
    ({ last = last } = rest);
    if (rest.hasMore) return { json: found.join(), next: last };
    from = rest.scannedTo;
  }
  return { json: found.join(), next: undefined };
}

/** `rows` are the plants of the list that the step found, up to `limit` + 1. */
export function stepOf(
  rows: readonly LongerPlantRow[],
  query: PlantQuery,
  scannedTo: number | undefined,
): ScanStep {
  const { limit } = query;
  return {
    json: pageOf(rows, query).json,
    plantCount: Math.min(rows.length, limit),
    last: rows[limit - 1]?.[0],
    hasMore: rows.length > limit,
    scannedTo,
  };
}
