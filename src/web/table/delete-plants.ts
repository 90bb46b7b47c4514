/**
 * Deletes plants after the user has agreed.
 */
import { PlantStoreError, type Plant, type PlantStore } from '../../client/client.ts';
import { inParallel } from '../../client/in-parallel.ts';
import { isProblem } from '../../client/problem.ts';
import { confirm } from '../shared/confirm.ts';
import { countOf } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';

const concurrency = 8;

/** Calls `onBegin` when the user has agreed, and `onGone` for each plant that the service has deleted. */
export async function deletePlants(
  store: PlantStore,
  plants: readonly Plant[],
  onBegin: () => void,
  onGone: (plant: Plant) => void,
): Promise<void> {
  const what = plants.length === 1 ? `“${plants[0]?.name}”` : countOf(plants.length, 'plant');
  const question = { title: `Delete ${what}?`, text: 'You cannot undo this.', action: 'Delete' };
  if (!(await confirm(question))) return;
  onBegin();
  const closeMessage = toast(`Deleting ${what} …`);
  const failures: string[] = [];
  const work = async (plant: Plant) => {
    const failure = await deletePlant(store, plant.id);
    if (failure === undefined) onGone(plant);
    else failures.push(failure);
  };
  try {
    await Array.fromAsync(inParallel(plants, concurrency, work));
  } finally {
    closeMessage();
  }
  if (failures.length === 0) toast(`Deleted ${what}.`);
  else toast(`${countOf(failures.length, 'plant')} could not be deleted. ${failures.at(-1)}`);
}

/** Returns why the plant could not be deleted. One that somebody else has deleted is deleted. */
async function deletePlant(store: PlantStore, id: number): Promise<string | undefined> {
  try {
    await store.delete(id);
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    if (error.kind !== 'plant-not-found') return error.detail;
    if (await exists(store, id)) return 'Some users let you see their plants, but not delete them.';
  }
  return undefined;
}

/** Whether the plant is there for this user. */
export async function exists(store: PlantStore, id: number): Promise<boolean> {
  try {
    await store.get(id);
    return true;
  } catch (error) {
    if (!isProblem(error, 'plant-not-found')) throw error;
    return false;
  }
}
