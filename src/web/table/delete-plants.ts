/**
 * Deletes plants at once, and brings them back if the user wants that.
 */
import { PlantStoreError, type Plant, type PlantStore } from '../../client/client.ts';
import { inParallel } from '../../client/in-parallel.ts';
import { isProblem } from '../../client/problem.ts';
import { textFields } from '../../client/types.ts';
import { element, sentence, type Text } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { offer, toast } from '../shared/toast.ts';
import { rowFields } from './plant-list.ts';

const concurrency = 8;

/** Calls `onGone` for each plant that is deleted, and `onBack` with those that the user brings back. */
export async function deletePlants(
  store: PlantStore,
  plants: readonly Plant[],
  onGone: (plant: Plant) => void,
  onBack: (plants: Plant[]) => void,
): Promise<void> {
  const deleted: Plant[] = [];
  const failures = await withEach(plants, 'Deleting', async (plant) => {
    try {
      await store.delete(plant.id);
      deleted.push(plant);
    } catch (error) {
      // One that somebody else has deleted is deleted, but theirs to bring back.
      if (!isProblem(error, 'plant-not-found')) throw error;
    }
    onGone(plant);
    return undefined;
  });
  if (failures.length > 0) toast(failureText(failures, 'deleted'));
  else if (deleted.length === 0) toast(sentence`Deleted ${whatOf(plants)}.`); // by somebody else
  if (deleted.length === 0) return;
  const undo = element('button', { type: 'button' }, 'Undo');
  const close = offer(sentence`Deleted ${whatOf(deleted)}.`, undo);
  undo.addEventListener('click', () => {
    close();
    void restorePlants(store, deleted, onBack);
  });
}

/** Brings deleted plants back. Calls `onBack` with those that are. */
export async function restorePlants(
  store: PlantStore,
  plants: readonly Plant[],
  onBack: (plants: Plant[]) => void,
): Promise<void> {
  const restored: Plant[] = [];
  const failures = await withEach(plants, 'Restoring', async (plant) => {
    const { current, fault } = await restore(store, plant);
    if (current !== undefined) restored.push(current);
    return fault;
  });
  onBack(restored);
  if (failures.length > 0) toast(failureText(failures, 'restored'));
  else toast(sentence`Restored ${whatOf(plants)}.`);
}

/** Restores a plant. Returns the plant that has its id then, and why it is not the same if it is not. */
export async function restore(
  store: PlantStore,
  plant: Omit<Plant, 'access'>,
): Promise<{ current?: Plant | undefined; fault?: Text }> {
  const { id, name, tag } = plant;
  try {
    return { current: await store.restore(id, { fields: rowFields }) };
  } catch (error) {
    if (isProblem(error, 'id-taken')) {
      const current = await find(store, id);
      const isSame = textFields.every((field) => current?.[field] === plant[field]);
      if (isSame) return { current }; // somebody was faster
      return {
        current,
        fault: sentence`“${name}” was changed or replaced after somebody restored it.`,
      };
    }
    if (!isProblem(error, 'plant-not-found')) throw error;
    const tagged = tag === '' ? '' : sentence` with the tag “${tag}”`;
    const fault = sentence`The service does not keep deleted plants for so long, or at all. Add “${name}”${tagged} again.`;
    return { fault };
  }
}

/** Does something with each plant. Returns why it failed, for each plant with which it did. */
async function withEach(
  plants: readonly Plant[],
  doing: string,
  work: (plant: Plant) => Promise<Text | undefined>,
): Promise<Text[]> {
  const closeMessage = toast(sentence`${doing} ${whatOf(plants)} …`);
  const failures: Text[] = [];
  const workOrFail = async (plant: Plant) => {
    try {
      const failure = await work(plant);
      if (failure !== undefined) failures.push(failure);
    } catch (error) {
      if (!(error instanceof PlantStoreError)) throw error;
      failures.push(error.detail);
    }
  };
  try {
    await Array.fromAsync(inParallel(plants, concurrency, workOrFail));
  } finally {
    closeMessage();
  }
  return failures;
}

function failureText(failures: readonly Text[], done: string): Text {
  return sentence`${countOf(failures.length, 'plant')} could not be ${done}. ${failures.at(-1) ?? ''}`;
}

function whatOf(plants: readonly Plant[]): Text {
  const [plant] = plants;
  if (plant === undefined || plants.length > 1) return countOf(plants.length, 'plant');
  return sentence`“${plant.name}”`;
}

/** The plant as it is now; undefined if it is not there for this user. */
export async function find(store: PlantStore, id: number): Promise<Plant | undefined> {
  return ifFound(store.get(id, { fields: rowFields }));
}

/** What was read about a plant; undefined if it is not there for this user. */
export async function ifFound<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (!isProblem(error, 'plant-not-found')) throw error;
    return undefined;
  }
}
