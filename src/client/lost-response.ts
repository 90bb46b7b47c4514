/**
 * What the client concludes if a request fails: whether the request may have changed the store, and whether it has done so
 * although the response was lost. docs/reference/client.md describes the rules.
 */
import { isProblem, type Failure } from './problem.ts';
import { textFields, type NewPlant, type PlantChange, type PlantPatch } from './types.ts';

/** Problems that promise that nothing was changed. */
const unchangedKinds: readonly string[] = [
  'overloaded',
  'provider-unavailable',
  'storage-full',
  'storage-unavailable',
];

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
  const found = await unlessMissing(get(plant.id));
  const isSame = textFields.every((field) => found?.[field] === (plant[field] ?? ''));
  return isSame ? found : undefined;
}

/** Whether the plant is as the patch makes it: an earlier request has updated it. */
export function isUpdated(plant: NewPlant, patch: PlantPatch): boolean {
  return textFields.every(
    (field) => patch[field] === undefined || plant[field] === (patch[field] ?? ''),
  );
}

/** Whether the latest change of the plant was to restore it: an earlier request has done that. */
export async function wasRestored(history: Promise<readonly PlantChange[]>): Promise<boolean> {
  const [latest] = (await unlessMissing(history)) ?? [];
  return latest?.event === 'restored';
}

/** Undefined if there is no such plant, or if it belongs to another user. */
async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isProblem(error, 'plant-not-found')) return undefined;
    throw error;
  }
}
