/**
 * Deletes plants at once, and brings them back if the user wants that.
 */
import type { Plant } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { textFields } from '../../client/types.ts';
import { store } from '../session/session.ts';
import { confirm } from '../shared/confirm.ts';
import { focusTable, sentence, type Text } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { offerUndo, toast } from '../shared/toast.ts';
import { forEach, whatOf } from './each.ts';
import { rowFields } from './plant-list.ts';
import { addPlants, ifFound, readPlant, removePlants } from './plants.ts';
import { clearSelection } from './selection.ts';

/** With more plants than this, the page asks first: a key that is pressed by mistake should not delete a store. */
const manyPlants = 200;

/** What the bin shows of a plant. */
type Deleted = Omit<Plant, 'access'>;

export async function deletePlants(plants: readonly Plant[]): Promise<void> {
  if (plants.length > manyPlants && !(await isMeant(plants))) return;
  clearSelection();
  focusTable();
  const deleted: Plant[] = [];
  const gone: number[] = [];
  const deleteOne = async (plant: Plant) => {
    // One that somebody else has deleted is deleted, but theirs to bring back.
    if (await ifFound(store.delete(plant.id).then(() => true))) deleted.push(plant);
    gone.push(plant.id);
    return undefined;
  };
  const showDone = () => removePlants(...gone.splice(0));
  const isDone = await forEach(plants, ['Deleting', 'deleted'], deleteOne, showDone);
  if (deleted.length > 0) {
    offerUndo(sentence`Deleted ${whatOf(deleted)}.`, () => restorePlants(deleted));
  } else if (isDone) toast(sentence`Deleted ${whatOf(plants)}.`); // by somebody else
}

async function isMeant(plants: readonly Plant[]): Promise<boolean> {
  const what = countOf(plants.length, 'plant');
  const text = 'The bin keeps them for a while, and can bring back all of them at once.';
  return confirm({ title: `Delete ${what}?`, text, action: `Delete ${what}` });
}

export async function restorePlants(plants: readonly Deleted[]): Promise<void> {
  if (await bringBack(plants)) toast(sentence`Restored ${whatOf(plants)}.`);
}

/** Restores deleted plants. Returns whether it restored all. */
export async function bringBack(plants: readonly Deleted[]): Promise<boolean> {
  const restored: Plant[] = [];
  const restoreOne = async (plant: Deleted) => {
    const { current, fault } = await restore(plant);
    if (current !== undefined) restored.push(current);
    return fault;
  };
  const isDone = await forEach(plants, ['Restoring', 'restored'], restoreOne);
  if (restored.length > 0) addPlants(restored);
  return isDone;
}

/** Restores a plant. Returns the plant that has its id then, and why it is not the same if it is not. */
export async function restore(
  plant: Deleted,
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
