/**
 * The dialog that adds plants. It keeps what was typed until the plant is added, whatever happens meanwhile.
 */
import type { NewPlant } from '../../client/client.ts';
import { store } from '../session/session.ts';
import { byId, sentence } from '../shared/dom.ts';
import { Form, newKey, textInputs } from '../shared/form.ts';
import { rowFields } from '../table/plant-list.ts';
import { addPlants, view } from '../table/plants.ts';

const name = byId('add-name', HTMLInputElement);
const tag = byId('add-tag', HTMLInputElement);
const id = byId('add-id', HTMLInputElement);
const inputs = textInputs('add');

const form = new Form('add', async () => {
  const draft: NewPlant = { name: name.value };
  for (const { field, input } of inputs) draft[field] = input.value;
  const wantedId = id.value.trim();
  if (wantedId !== '') draft.id = Number(wantedId);
  // The key makes a repeated request harmless, so the page repeats it until the service responds.
  const { plant } = await store.create(draft, { fields: rowFields, idempotencyKey: newKey() });
  if (name.value === draft.name) name.value = id.value = '';
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
