/**
 * The dialog that adds plants. It keeps what was typed until the plant is added, whatever happens meanwhile.
 */
import { store } from '../session/session.ts';
import { byId, sentence } from '../shared/dom.ts';
import { Form } from '../shared/form.ts';
import { rowFields } from '../table/plant-list.ts';
import { addPlants, view } from '../table/plants.ts';

const name = byId('add-name', HTMLInputElement);
const tag = byId('add-tag', HTMLInputElement);
const id = byId('add-id', HTMLInputElement);

const form = new Form('add', async () => {
  const wantedId = id.value.trim();
  const draft = {
    name: name.value,
    tag: tag.value,
    ...(wantedId !== '' && { id: Number(wantedId) }),
  };
  const { plant } = await store.create(draft, { fields: rowFields });
  name.value = '';
  id.value = '';
  name.focus();
  addPlants([plant]);
  return sentence`Added “${plant.name}” with the id ${String(plant.id)}. Add another, or close.`;
});

/** Opens the dialog. A tag that the table shows is filled in. */
export function openAdd(): void {
  tag.value ||= view.tag ?? '';
  form.clear();
  byId('add', HTMLDialogElement).showModal();
  name.focus();
}
