/**
 * The dialog of one plant: everything about it, its history, and what the user can do with it.
 */
import { PlantStoreError, type Plant, type PlantChange } from '../../client/client.ts';
import { optionalTexts } from '../../client/types.ts';
import { store } from '../session/session.ts';
import {
  byId,
  joined,
  onPress,
  sentence,
  setFacts,
  setText,
  show,
  type Text,
} from '../shared/dom.ts';
import { formatTime, titleOf } from '../shared/format.ts';
import { outcomeOf } from '../shared/outcome.ts';
import { deletePlants, restorePlants } from '../table/delete-plants.ts';
import { edit } from '../table/editor.ts';
import { isWritable } from '../table/plant-list.ts';
import { goneText, ifFound, readPlant } from '../table/plants.ts';
import { entryOf } from './menu-dialog.ts';

/** The service shows no more changes (src/log/change-log.ts). */
const maxChanges = 100;

type State = Omit<Plant, 'id' | 'access'>;

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

/** Shows what somebody else has done to the plant that is open, if it is one of these. */
export async function checkOpened(ids: ReadonlySet<number>): Promise<void> {
  if (dialog.open && shown !== undefined && ids.has(shown.id)) await load(shown);
}

export async function openPlant(plant: Plant): Promise<void> {
  isNew = true;
  draw(plant);
  show('plant-cut', false);
  list.replaceChildren();
  history.ariaBusy = 'true';
  dialog.showModal();
  byId('plant-close', HTMLButtonElement).focus();
  await load(plant);
}

/** Shows the plant as it is now, and its history, or why it cannot. */
async function load(plant: Plant): Promise<void> {
  const reading = Promise.all([
    readPlant(plant.id), // the table can be minutes old
    ifFound(store.history(plant.id)), // the service may keep none
  ]);
  const read = await outcomeOf(reading);
  if (shown !== plant) return;
  history.ariaBusy = null;
  if (read instanceof PlantStoreError) return setText('plant-failure', read.detail);
  const [current, changes = []] = read;
  list.replaceChildren(...entriesOf(changes, current));
  show('plant-cut', isCut(changes));
  if (current !== undefined) return draw(current);
  for (const action of ['edit', 'delete']) show(`plant-${action}`, false);
  setText('plant-failure', goneText(plant, 'this plant'));
  show('plant-restore', isWritable(plant) && changes[0]?.event === 'deleted');
}

function draw(plant: Plant): void {
  shown = plant;
  setText('plant-failure', '');
  show('plant-restore', false);
  const { id, name, owner } = plant;
  const texts = optionalTexts.map((field) => [titleOf(field), plant[field] || `no ${field}`]);
  setText('plant-name', name);
  setFacts('plant-facts', { Id: String(id), ...Object.fromEntries(texts), Owner: owner });
  for (const action of ['edit', 'delete']) show(`plant-${action}`, isWritable(plant));
}

/** Whether there can be earlier changes than these. */
function isCut(changes: readonly PlantChange[]): boolean {
  return changes.length === maxChanges && changes.at(-1)?.event !== 'created';
}

/** An entry for each change, newest first. `current` is the plant as it is now, if it is there. */
function entriesOf(changes: readonly PlantChange[], current: State | undefined): HTMLElement[] {
  let after = current;
  return changes.map((change) => {
    const { at, user = 'The operator', before } = change;
    const entry = entryOf(textOf(change, after), [user, formatTime(at)]);
    after = before ?? after;
    return entry;
  });
}

function textOf({ event, before }: PlantChange, after: State | undefined): Text {
  switch (event) {
    case 'created':
      return 'Added';
    case 'deleted':
      return 'Deleted';
    case 'restored':
      return 'Restored';
    case 'moved':
      return sentence`Moved from “${before?.owner ?? ''}” to “${after?.owner ?? ''}”`;
    case 'updated':
      return before && after ? updateText(before, after) : 'Edited';
    default:
      return event satisfies never; // of a later version of the service
  }
}

function updateText(before: State, after: State): Text {
  const parts: Text[] = [];
  if (before.name !== after.name)
    parts.push(sentence`Renamed from “${before.name}” to “${after.name}”`);
  for (const field of optionalTexts) {
    const [title, was, is] = [titleOf(field), before[field], after[field]];
    if (was === is) continue;
    if (was === '') parts.push(sentence`${title} “${is}” added`);
    else if (is === '') parts.push(sentence`${title} “${was}” removed`);
    else parts.push(sentence`${title} changed from “${was}” to “${is}”`);
  }
  return joined(parts, ' · ');
}
