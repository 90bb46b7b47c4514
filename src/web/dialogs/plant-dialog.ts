/**
 * The dialog of one plant: everything about it, its history, and what the user can do with it.
 */
import type { Plant, PlantStore } from '../../client/client.ts';
import { optionalTexts } from '../../client/types.ts';
import { byId, onPress, setFacts, setText, show } from '../shared/dom.ts';
import { formatTime, titleOf } from '../shared/format.ts';
import { find, ifFound } from '../table/delete-plants.ts';
import { isWritable } from '../table/plant-list.ts';
import { entryOf } from './menu-dialog.ts';
import { isCut, stepsOf } from './plant-history.ts';

interface PlantActions {
  edit: (plant: Plant) => void;
  delete: (plant: Plant) => Promise<void>;
  restore: (plant: Plant) => Promise<void>;
  /** Called with the plant as it is now in the service. */
  onRead: (plant: Plant) => void;
  /** Called if somebody else has deleted the plant. */
  onGone: (plant: Plant) => void;
}

/** Returns a function that opens the dialog. */
export function plantDialog(
  store: PlantStore,
  actions: PlantActions,
): (plant: Plant) => Promise<void> {
  const dialog = byId('plant', HTMLDialogElement);
  let shown: Plant | undefined;
  onPress('plant-close', () => dialog.close());
  for (const action of ['edit', 'delete', 'restore'] as const) {
    onPress(`plant-${action}`, async () => {
      dialog.close();
      if (shown !== undefined) await actions[action](shown);
    });
  }

  // The first press of a double click opens the dialog, and the second one arrives here.
  let isNew = false;
  const onSecondPress = (event: MouseEvent) => {
    const isSecond = isNew && event.detail > 1;
    isNew = false;
    if (!isSecond) return;
    event.stopPropagation();
    if (shown === undefined || !isWritable(shown)) return;
    dialog.close();
    actions.edit(shown);
  };
  dialog.addEventListener('click', onSecondPress, { capture: true });

  function draw(plant: Plant): void {
    shown = plant;
    const { id, name, owner } = plant;
    const texts = optionalTexts.map((field) => [titleOf(field), plant[field] || `no ${field}`]);
    setText('plant-name', name);
    setFacts('plant-facts', { Id: String(id), ...Object.fromEntries(texts), Owner: owner });
    for (const action of ['edit', 'delete']) show(`plant-${action}`, isWritable(plant));
  }

  return async (plant) => {
    isNew = true;
    draw(plant);
    for (const id of ['plant-gone', 'plant-restore', 'plant-cut']) show(id, false);
    const history = byId('plant-history', HTMLElement);
    const list = byId('plant-steps', HTMLElement);
    list.replaceChildren();
    history.ariaBusy = 'true';
    dialog.showModal();
    byId('plant-close', HTMLButtonElement).focus();
    const [current, changes = []] = await Promise.all([
      find(store, plant.id),
      ifFound(store.history(plant.id)), // the service may keep none
    ]);
    if (current === undefined) actions.onGone(plant);
    else actions.onRead(current); // the table can be minutes old
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
  };
}
