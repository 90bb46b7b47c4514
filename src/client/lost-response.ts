/**
 * What the client concludes if a request fails: whether the request may have changed the store, and whether a plant was
 * created although the response was lost. Decision 27 has the rules.
 */
import { isProblem, type Failure } from './problem.ts';
import type { NewPlant } from './types.ts';

/** Problems that promise that nothing was changed. */
const unchangedKinds: readonly string[] = ['overloaded', 'storage-full', 'storage-unavailable'];

/** Whether the request may have changed the store although it failed. */
export function mayHaveChanged({ kind, status }: Failure): boolean {
  if (unchangedKinds.includes(kind)) return false;
  return status < 300 || status >= 500;
}

/** The plant with the id of `plant`, if both are equal: an earlier request has created it. */
export async function findCreated<Found extends NewPlant>(
  plant: NewPlant,
  get: (id: number) => Promise<Found>,
): Promise<Found | undefined> {
  if (plant.id === undefined) return undefined;
  try {
    const found = await get(plant.id);
    return found.name === plant.name && found.tag === (plant.tag ?? '') ? found : undefined;
  } catch (error) {
    if (isProblem(error, 'plant-not-found')) return undefined; // it belongs to another user
    throw error;
  }
}
