/**
 * The dialog of one plant: everything about it, and what the user can do with it.
 */
import { isProblem } from '../../client/problem.ts';
import type { Connection } from '../session/connection.ts';
import { byId, onPress, setFacts, setText, show } from '../shared/dom.ts';
import { tagText } from '../shared/format.ts';
import type { Plant } from '../table/plant-list.ts';

export class PlantDialog {
  readonly #connection: Connection;
  readonly #onGone: (plant: Plant) => void;
  readonly #dialog = byId('plant', HTMLDialogElement);
  #plant: Plant | undefined;

  constructor(
    connection: Connection,
    {
      onDelete,
      onGone,
    }: { onDelete: (plant: Plant) => Promise<void>; onGone: (plant: Plant) => void },
  ) {
    this.#connection = connection;
    this.#onGone = onGone;
    onPress('plant-close', () => this.close());
    onPress('plant-delete', async () => {
      this.#dialog.close();
      if (this.#plant !== undefined) await onDelete(this.#plant);
    });
  }

  close(): void {
    this.#dialog.close();
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
      await this.#connection.run((store) => store.get(plant.id));
    } catch (error) {
      if (!isProblem(error, 'plant-not-found')) throw error;
      this.#onGone(plant);
      if (this.#plant !== plant) return;
      show('plant-gone');
      show('plant-delete', false);
    }
  }
}
