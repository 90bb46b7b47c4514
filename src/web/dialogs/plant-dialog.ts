/**
 * The dialog of one plant: everything about it, and what the user can do with it.
 */
import type { PlantStore } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { byId, onPress, setFacts, setText, show } from '../shared/dom.ts';
import { tagText } from '../shared/format.ts';
import type { Plant } from '../table/plant-list.ts';

interface PlantActions {
  onDelete: (plant: Plant) => Promise<void>;
  /** Somebody else has deleted the plant. */
  onGone: (plant: Plant) => void;
}

export class PlantDialog {
  readonly #store: PlantStore;
  readonly #onGone: PlantActions['onGone'];
  readonly #dialog = byId('plant', HTMLDialogElement);
  #plant: Plant | undefined;

  constructor(store: PlantStore, { onDelete, onGone }: PlantActions) {
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
    try {
      await this.#store.get(plant.id);
    } catch (error) {
      if (!isProblem(error, 'plant-not-found')) throw error;
      this.#onGone(plant);
      if (this.#plant !== plant) return;
      show('plant-gone');
      show('plant-delete', false);
    }
  }
}
