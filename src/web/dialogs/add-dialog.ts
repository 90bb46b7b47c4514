/**
 * The dialog that adds plants. It keeps what was typed until the plant is added, whatever happens meanwhile.
 */
import { PlantStoreError, type PlantStore } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { act } from '../shared/banner.ts';
import type { Connection } from '../session/connection.ts';
import { byId, onPress, setFault, setText, show, showText } from '../shared/dom.ts';
import type { Plant } from '../table/plant-list.ts';

interface Draft {
  name: string;
  tag?: string;
  id?: number;
}

export class AddDialog {
  readonly #connection: Connection;
  readonly #onAdded: (plant: Plant) => void;
  readonly #dialog = byId('add', HTMLDialogElement);
  readonly #submit = byId('add-submit', HTMLButtonElement);
  readonly #fields = {
    name: byId('add-name', HTMLInputElement),
    tag: byId('add-tag', HTMLInputElement),
    id: byId('add-id', HTMLInputElement),
  };

  constructor(connection: Connection, onAdded: (plant: Plant) => void) {
    this.#connection = connection;
    this.#onAdded = onAdded;
    onPress('add-close', () => this.#dialog.close());
    byId('add-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#add();
    });
  }

  /** Opens the dialog. A tag that the table shows is filled in. */
  open(tag: string | undefined): void {
    if (this.#fields.tag.value === '' && tag !== undefined) this.#fields.tag.value = tag;
    setText('add-done', '');
    this.#dialog.showModal();
    this.#fields.name.focus();
  }

  async #add(): Promise<void> {
    if (this.#submit.ariaBusy === 'true') return act(); // there is no need to wait
    this.#clearFaults();
    const draft = this.#draft();
    if (draft === undefined) return;
    this.#submit.ariaBusy = 'true'; // unlike `disabled`, it keeps the focus
    try {
      const once = draft.id === undefined;
      this.#added(await this.#connection.run(creation(draft), { once }));
    } catch (error) {
      if (!(error instanceof PlantStoreError)) throw error;
      this.#showFaults(error);
    } finally {
      this.#submit.ariaBusy = null;
    }
  }

  #added(plant: Plant): void {
    this.#fields.name.value = '';
    this.#fields.id.value = '';
    setText('add-done', `Added “${plant.name}” with the id ${plant.id}. Add another, or close.`);
    this.#fields.name.focus();
    this.#onAdded(plant);
  }

  /** What was typed. Undefined if there is no name, or if the id is no number, which JSON could not carry. */
  #draft(): Draft | undefined {
    const { name, tag, id } = this.#fields;
    const idText = id.value.trim();
    const isId = idText === '' || /^\d{1,16}$/.test(idText);
    if (!isId) this.#fault(id, 'The id must be a whole number from 1 to 9007199254740991.');
    if (name.value === '') this.#fault(name, 'Enter a name.');
    if (!isId || name.value === '') return undefined;
    return {
      name: name.value,
      ...(tag.value !== '' && { tag: tag.value }),
      ...(idText !== '' && { id: Number(idText) }),
    };
  }

  #showFaults(error: PlantStoreError): void {
    const { name, tag, id } = this.#fields;
    const places: Record<string, HTMLInputElement> = { '/name': name, '/tag': tag, '/id': id };
    const others = error.errors.filter(({ pointer, detail }) => {
      const field = places[pointer ?? ''];
      if (field !== undefined) this.#fault(field, detail);
      return field === undefined;
    });
    if (error.kind === 'id-taken') this.#fault(id, error.detail);
    else if (error.errors.length === 0 || others.length > 0) {
      showText('add-failure', failureText(error));
    }
  }

  /** Shows a fault, and moves to the first one. */
  #fault(field: HTMLInputElement, fault: string): void {
    setFault(field, fault);
    if (field === this.#fields.id) byId('add-more', HTMLDetailsElement).open = true;
    this.#dialog.querySelector<HTMLInputElement>('[aria-invalid]')?.focus();
  }

  #clearFaults(): void {
    for (const field of Object.values(this.#fields)) setFault(field, '');
    setText('add-done', '');
    show('add-failure', false);
  }
}

/** Creates a plant. If it is repeated after a response was lost, the plant with this id may be the one it created. */
function creation(draft: Draft): (store: PlantStore) => Promise<Plant> {
  const fields = ['id', 'name', 'tag'] as const;
  let mayExist = false;
  return async (store) => {
    try {
      return (await store.create(draft, { fields })).plant;
    } catch (error) {
      mayExist ||= error instanceof PlantStoreError && error.outcomeUnknown;
      if (!mayExist || draft.id === undefined || !isProblem(error, 'id-taken')) throw error;
      const found = await store.get(draft.id, { fields }).catch((problem: unknown) => {
        throw isProblem(problem, 'plant-not-found') ? error : problem; // it belongs to another user
      });
      if (found.name !== draft.name || found.tag !== (draft.tag ?? '')) throw error;
      return found;
    }
  };
}

function failureText(error: PlantStoreError): string {
  return error.outcomeUnknown
    ? 'The response was lost: the plant may have been added. Look for it before you add it again.'
    : error.detail;
}
