/**
 * The dialog of one plant: everything about it, its history, and what the user can do with it.
 */
import type { Plant } from '../../client/client.ts';
import { optionalTexts } from '../../client/types.ts';
import { store } from '../session/session.ts';
import { byId, onPress, setFacts, setText, show } from '../shared/dom.ts';
import { formatTime, titleOf } from '../shared/format.ts';
import { deletePlants, restorePlants } from '../table/delete-plants.ts';
import { edit } from '../table/editor.ts';
import { isWritable } from '../table/plant-list.ts';
import { ifFound, readPlant } from '../table/plants.ts';
import { entryOf } from './menu-dialog.ts';
import { isCut, stepsOf } from './plant-history.ts';

const dialog = byId('plant', HTMLDialogElement);
const history = byId('plant-history', HTMLElement);
const list = byId('plant-steps', HTMLElement);
let shown: Plant | undefined;
/** The first press of a double click opens the dialog, and the second one arrives here. */
let isNew = false;

onPressed('edit', edit);
onPressed('delete', async (plant) => deletePlants([plant]));
onPressed('restore', async (plant) => restorePlants([plant]));
dialog.addEventListener('click', secondPressed, { capture: true });

function onPressed(action: string, act: (plant: Plant) => Promise<void>): void {
  onPress(`plant-${action}`, async () => {
    dialog.close();
    if (shown !== undefined) await act(shown);
  });
}

function secondPressed(event: MouseEvent): void {
  const isSecond = isNew && event.detail > 1;
  isNew = false;
  if (!isSecond) return;
  event.stopPropagation();
  if (shown === undefined || !isWritable(shown)) return;
  dialog.close();
  void edit(shown);
}

export async function openPlant(plant: Plant): Promise<void> {
  isNew = true;
  draw(plant);
  for (const id of ['plant-gone', 'plant-restore', 'plant-cut']) show(id, false);
  list.replaceChildren();
  history.ariaBusy = 'true';
  dialog.showModal();
  byId('plant-close', HTMLButtonElement).focus();
  const [current, changes = []] = await Promise.all([
    readPlant(plant.id), // the table can be minutes old
    ifFound(store.history(plant.id)), // the service may keep none
  ]);
  if (shown !== plant) return;
  history.ariaBusy = null;
  list.replaceChildren(
    ...stepsOf(changes, current).map(({ what, who, at }) => entryOf(what, [who, formatTime(at)])),
  );
  show('plant-cut', isCut(changes));
  if (current !== undefined) return draw(current);
  for (const action of ['edit', 'delete']) show(`plant-${action}`, false);
  show('plant-gone');
  show('plant-restore', isWritable(plant) && changes[0]?.event === 'deleted');
}

function draw(plant: Plant): void {
  shown = plant;
  const { id, name, owner } = plant;
  const texts = optionalTexts.map((field) => [titleOf(field), plant[field] || `no ${field}`]);
  setText('plant-name', name);
  setFacts('plant-facts', { Id: String(id), ...Object.fromEntries(texts), Owner: owner });
  for (const action of ['edit', 'delete']) show(`plant-${action}`, isWritable(plant));
}
