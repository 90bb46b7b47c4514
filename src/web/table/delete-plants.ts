/**
 * Deletes plants at once, and brings them back if the user wants that.
 */
import { PlantStoreError, type Plant } from '../../client/client.ts';
import { inParallel } from '../../client/in-parallel.ts';
import { isProblem } from '../../client/problem.ts';
import { textFields } from '../../client/types.ts';
import { store } from '../session/session.ts';
import { element, focusTable, sentence, type Text } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { offer, toast } from '../shared/toast.ts';
import { rowFields } from './plant-list.ts';
import { addPlants, ifFound, readPlant, removePlant } from './plants.ts';
import { clearSelection } from './selection.ts';

const concurrency = 8;

export async function deletePlants(plants: readonly Plant[]): Promise<void> {
  clearSelection();
  focusTable();
  const deleted: Plant[] = [];
  const failures = await withEach(plants, ['Deleting', 'deleted'], async (plant) => {
    // One that somebody else has deleted is deleted, but theirs to bring back.
    if (await ifFound(store.delete(plant.id).then(() => true))) deleted.push(plant);
    removePlant(plant.id);
    return undefined;
  });
  if (failures === 0 && deleted.length === 0) toast(sentence`Deleted ${whatOf(plants)}.`); // by somebody else
  if (deleted.length === 0) return;
  const undo = element('button', { type: 'button' }, 'Undo');
  const close = offer(sentence`Deleted ${whatOf(deleted)}.`, undo);
  undo.addEventListener('click', () => {
    close();
    void restorePlants(deleted);
  });
}

/** Brings deleted plants back. */
export async function restorePlants(plants: readonly Plant[]): Promise<void> {
  const restored: Plant[] = [];
  const failures = await withEach(plants, ['Restoring', 'restored'], async (plant) => {
    const { current, fault } = await restore(plant);
    if (current !== undefined) restored.push(current);
    return fault;
  });
  addPlants(restored);
  if (failures === 0) toast(sentence`Restored ${whatOf(plants)}.`);
}

/** Restores a plant. Returns the plant that has its id then, and why it is not the same if it is not. */
export async function restore(
  plant: Omit<Plant, 'access'>,
): Promise<{ current?: Plant | undefined; fault?: Text }> {
  const { id, name, tag } = plant;
  try {
    return { current: await store.restore(id, { fields: rowFields }) };
  } catch (error) {
    if (isProblem(error, 'id-taken')) {
      const current = await readPlant(id);
      const isSame = textFields.every((field) => current?.[field] === plant[field]);
      if (isSame) return { current }; // somebody was faster
      const fault = sentence`“${name}” was changed or replaced after somebody restored it.`;
      return { current, fault };
    }
    if (!isProblem(error, 'plant-not-found')) throw error;
    const tagged = tag === '' ? '' : sentence` with the tag “${tag}”`;
    const fault = sentence`The service does not keep deleted plants for so long, or at all. Add “${name}”${tagged} again.`;
    return { fault };
  }
}

/** Does something with each plant, and shows why it failed if it did. Returns for how many. */
async function withEach(
  plants: readonly Plant[],
  [doing, done]: [string, string],
  work: (plant: Plant) => Promise<Text | undefined>,
): Promise<number> {
  const closeMessage = toast(sentence`${doing} ${whatOf(plants)} …`);
  const workOrFail = async (plant: Plant) => {
    try {
      return await work(plant);
    } catch (error) {
      if (error instanceof PlantStoreError) return error.detail;
      throw error;
    }
  };
  try {
    const outcomes = await Array.fromAsync(inParallel(plants, concurrency, workOrFail));
    const failures = outcomes.filter((failure) => failure !== undefined);
    const count = countOf(failures.length, 'plant');
    const failure = failures.at(-1);
    if (failure !== undefined) toast(sentence`${count} could not be ${done}. ${failure}`);
    return failures.length;
  } finally {
    closeMessage();
  }
}

function whatOf(plants: readonly Plant[]): Text {
  const [plant] = plants;
  if (plant === undefined || plants.length > 1) return countOf(plants.length, 'plant');
  return sentence`“${plant.name}”`;
}
