/**
 * Plants without the numbers of their owners, for tests that compare them with lists.
 */
import type { OwnedPlant } from '../../src/plants/plant-storage.ts';
import type { Plant } from '../../src/plants/plant.ts';
import type { Storage } from '../../src/storage.ts';

type Plants = Storage['plants'];
type With = Pick<Storage, 'plants'>;

export async function create(
  { plants }: With,
  ...args: Parameters<Plants['create']>
): Promise<Plant> {
  return plain(await plants.create(...args));
}

export async function find(
  { plants }: With,
  ...args: Parameters<Plants['find']>
): Promise<Plant | undefined> {
  const found = await plants.find(...args);
  return found && plain(found);
}

export type StoredField = keyof Plant;

/** One plant as in a list with these fields. */
export function plantJson(plant: Plant, fields: readonly StoredField[]): string {
  return JSON.stringify(Object.fromEntries(fields.map((field) => [field, plant[field]])));
}

function plain({ id, name, tag }: OwnedPlant): Plant {
  return { id, name, tag };
}
