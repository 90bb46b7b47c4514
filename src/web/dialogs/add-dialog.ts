/**
 * The dialog that adds plants. It keeps what was typed until the plant is added, whatever happens meanwhile.
 */
import type { PlantStore } from '../../client/client.ts';
import { byId, onPress } from '../shared/dom.ts';
import { Form } from '../shared/form.ts';
import type { Plant } from '../table/plant-list.ts';

export class AddDialog {
  readonly #store: PlantStore;
  readonly #onAdded: (plant: Plant) => void;
  readonly #dialog = byId('add', HTMLDialogElement);
  readonly #name = byId('add-name', HTMLInputElement);
  readonly #tag = byId('add-tag', HTMLInputElement);
  readonly #id = byId('add-id', HTMLInputElement);
  readonly #form = new Form('add', () => this.#add());

  constructor(store: PlantStore, onAdded: (plant: Plant) => void) {
    this.#store = store;
    this.#onAdded = onAdded;
    onPress('add-close', () => this.#dialog.close());
  }

  /** Opens the dialog. A tag that the table shows is filled in. */
  open(tag: string | undefined): void {
    if (this.#tag.value === '' && tag !== undefined) this.#tag.value = tag;
    this.#form.clear();
    this.#dialog.showModal();
    this.#name.focus();
  }

  async #add(): Promise<string> {
    const id = this.#id.value.trim();
    const draft = {
      name: this.#name.value,
      tag: this.#tag.value,
      ...(id !== '' && { id: Number(id) }),
    };
    const { plant } = await this.#store.create(draft, { fields: ['id', 'name', 'tag'] });
    this.#name.value = '';
    this.#id.value = '';
    this.#name.focus();
    this.#onAdded(plant);
    return `Added “${plant.name}” with the id ${plant.id}. Add another, or close.`;
  }
}
