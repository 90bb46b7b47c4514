/**
 * The dialog of one plant: everything about it, and what the user can do with it.
 */
import type { PlantStore } from '../../client/client.ts';
import { byId, onPress, setFacts, setText, show } from '../shared/dom.ts';
import { tagText } from '../shared/format.ts';
import { exists } from '../table/delete-plants.ts';
import type { Plant } from '../table/plant-list.ts';

export class PlantDialog {
  readonly #store: PlantStore;
  readonly #onGone: (plant: Plant) => void;
  readonly #dialog = byId('plant', HTMLDialogElement);
  #plant: Plant | undefined;

  /** `onGone` is called if somebody else has deleted the plant. */
  constructor(
    store: PlantStore,
    onDelete: (plant: Plant) => Promise<void>,
    onGone: (plant: Plant) => void,
  ) {
    this.#store = store;
    this.#onGone = onGone;
    onPress('plant-close', () => this.#dialog.close());
    onPress('plant-delete', async () => {
      this.#dialog.close();
      if (this.#plant !== undefined) await onDelete(this.#plant);
    });
  }

  async open(plant: Plant, { canDelete }: { canDelete: boolean }): Promise<void> {
    this.#plant = plant;
    setText('plant-name', plant.name);
    setFacts('plant-facts', { Id: String(plant.id), Tag: tagText(plant.tag) });
    show('plant-gone', false);
    show('plant-delete', canDelete);
    this.#dialog.showModal();
    byId('plant-close', HTMLButtonElement).focus();
    await this.#checkIfGone(plant);
  }

  /** The table can be minutes old. */
  async #checkIfGone(plant: Plant): Promise<void> {
    if (await exists(this.#store, plant.id)) return;
    this.#onGone(plant);
    if (this.#plant !== plant) return;
    show('plant-gone');
    show('plant-delete', false);
  }
}
