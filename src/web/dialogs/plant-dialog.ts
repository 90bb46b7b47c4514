/**
 * The dialog of one plant: everything about it, and what the user can do with it.
 */
import type { Plant, PlantStore } from '../../client/client.ts';
import { byId, onPress, setFacts, setText, show } from '../shared/dom.ts';
import { exists } from '../table/delete-plants.ts';

/** Returns a function that opens the dialog. `onGone` is called if somebody else has deleted the plant. */
export function plantDialog(
  store: PlantStore,
  onDelete: (plant: Plant) => Promise<void>,
  onGone: (plant: Plant) => void,
): (plant: Plant, canDelete: boolean) => Promise<void> {
  const dialog = byId('plant', HTMLDialogElement);
  let shown: Plant | undefined;
  onPress('plant-close', () => dialog.close());
  onPress('plant-delete', async () => {
    dialog.close();
    if (shown !== undefined) await onDelete(shown);
  });

  return async (plant, canDelete) => {
    shown = plant;
    setText('plant-name', plant.name);
    setFacts('plant-facts', { Id: String(plant.id), Tag: plant.tag || 'no tag' });
    show('plant-gone', false);
    show('plant-delete', canDelete);
    dialog.showModal();
    byId('plant-close', HTMLButtonElement).focus();
    if (await exists(store, plant.id)) return; // the table can be minutes old
    onGone(plant);
    if (shown !== plant) return;
    show('plant-gone');
    show('plant-delete', false);
  };
}
