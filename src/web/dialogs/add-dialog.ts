/**
 * The dialog that adds plants. It keeps what was typed until the plant is added, whatever happens meanwhile.
 */
import type { PlantStore } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { byId, onPress } from '../shared/dom.ts';
import { Form } from '../shared/form.ts';
import type { Plant } from '../table/plant-list.ts';

const lostText =
  'The response was lost: the plant may have been added. Look for it before you add it again.';

export class AddDialog {
  readonly #store: PlantStore;
  readonly #onAdded: (plant: Plant) => void;
  readonly #dialog = byId('add', HTMLDialogElement);
  readonly #name = byId('add-name', HTMLInputElement);
  readonly #tag = byId('add-tag', HTMLInputElement);
  readonly #id = byId('add-id', HTMLInputElement);
  readonly #form = new Form('add', () => this.#add(), lostText);

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
    const [name, tag, idText] = [this.#name.value, this.#tag.value, this.#id.value.trim()];
    if (!/^\d{0,16}$/.test(idText)) {
      this.#form.fault('id', 'The id must be a whole number from 1 to 9007199254740991.');
    }
    if (name === '') this.#form.fault('name', 'Enter a name.');
    if (this.#form.isFaulty) return '';
    const draft = { name, tag, ...(idText !== '' && { id: Number(idText) }) };
    try {
      const { plant } = await this.#store.create(draft, { fields: ['id', 'name', 'tag'] });
      return this.#added(plant);
    } catch (error) {
      if (!isProblem(error, 'id-taken')) throw error;
      this.#form.fault('id', error.detail);
      return '';
    }
  }

  #added(plant: Plant): string {
    this.#name.value = '';
    this.#id.value = '';
    this.#name.focus();
    this.#onAdded(plant);
    return `Added “${plant.name}” with the id ${plant.id}. Add another, or close.`;
  }
}
