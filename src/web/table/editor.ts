/**
 * The fields that replace the row of a plant. They are above the table, because its rows exist only while they are
 * visible. A change is saved only if nobody else has changed the plant meanwhile; otherwise, the user chooses.
 */
import type { Plant, PlantPatch } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { optionalTexts } from '../../client/types.ts';
import { store } from '../session/session.ts';
import {
  byId,
  changed,
  joined,
  onPress,
  sentence,
  setText,
  show,
  type Text,
} from '../shared/dom.ts';
import { Form, textInputs } from '../shared/form.ts';
import { announce, toast } from '../shared/toast.ts';
import { restore } from './delete-plants.ts';
import { rowFields } from './plant-list.ts';
import { goneText, ifFound, list, removePlants, updatePlants } from './plants.ts';

export const editor = byId('edit', HTMLElement);
/** The plant that is edited, as its row showed it. */
export let edited: Plant | undefined;
/** No plant has this entity tag, so a change is not saved before the plant was read. */
const unread = '"unread"';
/** The plant as it was when it was last read, or as its row shows it, and its entity tag. */
let read: { plant: Plant; etag: string } | undefined;
/** Whether saving restores the plant first. */
let isGone = false;
const nameField = byId('edit-name', HTMLInputElement);
const saveButton = byId('edit-save', HTMLButtonElement);
const inputs = textInputs('edit');
const form = new Form('edit', save);

onPress('edit-cancel', close);
editor.addEventListener('keydown', ({ key, isComposing }) => {
  if (key === 'Escape' && !isComposing) close();
});

/** Turns the row of a plant into fields. Reads the plant, because its row can be minutes old. */
export async function edit(plant: Plant): Promise<void> {
  if (edited !== undefined && isChanged()) {
    nameField.focus(); // what was typed is not lost
    if (edited.id !== plant.id)
      toast(sentence`First save or cancel your change to “${edited.name}”.`);
    return;
  }
  edited = plant;
  read = { plant, etag: unread };
  list?.hold(plant.id);
  setPlace('row');
  form.clear();
  ask(undefined);
  fillIn(plant);
  show('edit');
  nameField.focus();
  nameField.select();
  changed(); // the table moves the fields to the row
  const shown = nameField.value;
  await checkEdited();
  if (edited === plant && nameField.value !== shown && !isChanged()) nameField.select();
}

/** Shows which plant is edited if the fields do not cover its row, and asks what to do with a change if it has none. */
export function setPlace(place: 'row' | 'scrolled away' | 'none'): void {
  if (edited === undefined) return;
  const { name } = edited;
  const isLost = place === 'none';
  const lost = sentence`“${name}” is not among these plants. Save or cancel your change to it.`;
  const text = isLost ? lost : sentence`Edit “${name}”`;
  setText('edit-title', text);
  if (isLost && editor.dataset['place'] !== place) announce(text);
  editor.dataset['place'] = place;
}

/** Another list is shown. What was typed stays, and so does the row of its plant. */
export function keepIfChanged(): void {
  if (edited !== undefined && isChanged()) list?.hold(edited.id);
  else close();
}

function isChanged(): boolean {
  const before = read?.plant;
  if (before === undefined) return false;
  return inputs.some(({ field, input }) => input.value !== before[field]);
}

function close(): void {
  edited = undefined;
  read = undefined;
  list?.release();
  show('edit', false);
}

/** Shows what somebody else has done to the plant meanwhile. What was typed stays: saving it asks the user then. */
export async function checkEdited(): Promise<void> {
  const [plant, before] = [edited, read];
  const isSaving = () => saveButton.ariaBusy === 'true';
  if (plant === undefined || before === undefined || isSaving()) return;
  const current = await readAgain(plant);
  if (edited !== plant || read !== before || isSaving()) return;
  if (current === undefined) return leave(plant);
  updatePlants(current.plant);
  if (isGone) ask(undefined); // somebody has restored it
  if (current.etag === before.etag) return;
  const hasTyped = isChanged();
  if (hasTyped && !isSame(current.plant, before.plant)) {
    return setText('edit-choice', changedTo(current.plant));
  }
  read = current;
  if (!hasTyped) fillIn(current.plant);
}

/** The plant is gone. The editor closes, unless that would lose what was typed: saving it restores the plant. */
function leave(plant: Plant): void {
  removePlants(plant.id);
  if (edited !== plant) return; // the user has left it
  const gone = goneText(plant, sentence`“${plant.name}”`);
  if (!isChanged()) {
    close();
    return void toast(gone);
  }
  ask(undefined);
  isGone = true;
  setText('edit-choice', gone);
  setText('edit-save', 'Restore and save');
}

function fillIn(plant: Plant): void {
  for (const { field, input } of inputs)
    if (input.value !== plant[field]) input.value = plant[field];
}

async function readAgain({ id }: Plant): Promise<typeof read> {
  return ifFound(store.getWithETag(id, { fields: rowFields }));
}

function isSame(one: Plant, other: Plant): boolean {
  return inputs.every(({ field }) => one[field] === other[field]);
}

async function save(): Promise<void> {
  const plant = edited;
  if (plant === undefined || read === undefined) return;
  if (!isChanged()) return close();
  const { plant: before, etag } = read;
  const name = nameField.value;
  const patch: PlantPatch = {};
  for (const { field, input } of inputs) {
    if (input.value !== before[field]) patch[field] = input.value;
  }
  if (isGone) {
    const { current, fault = '' } = await restore(before);
    if (current === undefined) return setText('edit-choice', fault);
    updatePlants(current);
    ask(undefined);
  }
  try {
    updatePlants(await store.update(plant.id, patch, { ifMatch: etag, fields: rowFields }));
  } catch (error) {
    const isLate = isProblem(error, 'precondition-failed');
    const isReadOnly = isProblem(error, 'plant-read-only');
    if (!isLate && !isReadOnly && !isProblem(error, 'plant-not-found')) throw error;
    const current = await readAgain(plant);
    if (current === undefined) return leave(plant);
    const { plant: theirs } = current;
    updatePlants(theirs);
    if (!isLate) throw error;
    if (edited !== plant) return; // the user has left meanwhile
    if (current.etag === etag) throw error; // nobody has changed the plant: a proxy changes entity tags
    read = current;
    if (isSame(theirs, before)) return save();
    // Only what this user has changed is theirs to choose about.
    for (const { field, input } of inputs) {
      if (patch[field] === undefined) input.value = theirs[field];
    }
    if (isChanged()) return ask(theirs);
  }
  if (edited === plant) close();
  toast(sentence`Saved “${name}”.`);
}

/** Lets the user choose between their text and the one of somebody else; without a text, there is no choice. */
function ask(theirs: Plant | undefined): void {
  const isChoice = theirs !== undefined;
  isGone = false;
  setText('edit-choice', isChoice ? changedTo(theirs) : '');
  setText('edit-cancel', isChoice ? 'Keep theirs' : 'Cancel');
  setText('edit-save', isChoice ? 'Save mine' : 'Save');
  if (isChoice) byId('edit-cancel', HTMLButtonElement).focus();
}

function changedTo(plant: Plant): Text {
  const { name } = plant;
  const others = optionalTexts.map((field) => plant[field]).filter((text) => text !== '');
  const more = others.length === 0 ? '' : sentence` (${joined(others, ', ')})`;
  return sentence`Somebody changed this plant meanwhile: “${name}”${more}.`;
}
