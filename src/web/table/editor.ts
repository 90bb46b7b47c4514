/**
 * The fields that replace the row of a plant. They are above the table, because its rows exist only while they are
 * visible. A change is saved only if nobody else has changed the plant meanwhile; otherwise, the user chooses.
 */
import type { Plant } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { store } from '../session/session.ts';
import { byId, changed, onPress, sentence, setText, show, type Text } from '../shared/dom.ts';
import { Form } from '../shared/form.ts';
import { announce, toast } from '../shared/toast.ts';
import { rowFields } from './plant-list.ts';
import { ifFound, removePlant, updatePlant } from './plants.ts';

export const editor = byId('edit', HTMLElement);
/** The plant that is edited, as its row showed it. */
export let edited: Plant | undefined;
/** The plant as it was when it was last read, and its entity tag. */
let read: { plant: Plant; etag: string } | undefined;
const nameField = byId('edit-name', HTMLInputElement);
const tagField = byId('edit-tag', HTMLInputElement);
const form = new Form('edit', save);

onPress('edit-cancel', close);
editor.addEventListener('keydown', ({ key, isComposing }) => {
  if (key === 'Escape' && !isComposing) close();
});

/** Turns the row of a plant into fields. Reads the plant, because its row can be minutes old. */
export async function edit(plant: Plant): Promise<void> {
  if (isChanged()) return nameField.focus(); // what was typed is not lost
  edited = plant;
  read = undefined;
  editor.ariaLabel = `Edit plant ${plant.id}`;
  form.clear();
  ask(undefined);
  fillIn(plant);
  show('edit');
  nameField.focus();
  changed(); // the table moves the fields to the row
  const current = await reread(plant);
  if (edited !== plant || current === undefined) return;
  fillIn(current);
  nameField.select();
}

export function closeUnlessChanged(): void {
  if (!isChanged()) close();
}

function isChanged(): boolean {
  if (read === undefined) return false;
  const { name, tag } = read.plant;
  return nameField.value !== name || tagField.value !== tag;
}

function close(): void {
  edited = undefined;
  read = undefined;
  show('edit', false);
}

/** Fields that are not read yet cannot be changed. */
function fillIn({ name, tag }: Plant): void {
  nameField.value = name;
  tagField.value = tag;
  for (const field of [nameField, tagField]) field.readOnly = read === undefined;
}

/** Gets the plant as it is now. If it is gone, the editor closes. */
async function reread(plant: Plant): Promise<Plant | undefined> {
  const current = await ifFound(store.getWithETag(plant.id, { fields: rowFields }));
  if (current === undefined) {
    removePlant(plant.id);
    if (edited === plant) close();
    toast(sentence`Someone has deleted “${plant.name}”, or no longer shares it with you.`);
    return undefined;
  }
  updatePlant(current.plant);
  if (edited === plant) read = current;
  return current.plant;
}

async function save(): Promise<void> {
  const plant = edited;
  if (plant === undefined || read === undefined) return;
  if (!isChanged()) return close();
  const { plant: before, etag } = read;
  const [name, tag] = [nameField.value, tagField.value];
  const patch = { ...(name !== before.name && { name }), ...(tag !== before.tag && { tag }) };
  try {
    updatePlant(await store.update(plant.id, patch, { ifMatch: etag, fields: rowFields }));
  } catch (error) {
    const isLate = isProblem(error, 'precondition-failed');
    const isReadOnly = isProblem(error, 'plant-read-only');
    if (!isLate && !isReadOnly && !isProblem(error, 'plant-not-found')) throw error;
    const theirs = await reread(plant);
    if (theirs === undefined) return;
    if (!isLate) throw error;
    if (edited !== plant) return; // the user has left meanwhile
    if (read.etag === etag) throw error; // nobody has changed the plant: a proxy changes entity tags
    // Only what this user has changed is theirs to choose about.
    if (name === before.name) nameField.value = theirs.name;
    if (tag === before.tag) tagField.value = theirs.tag;
    if (isChanged()) return ask(textOf(theirs));
  }
  if (edited === plant) close();
  announce(sentence`Saved “${name}”.`);
}

/** Lets the user choose between their text and the one of somebody else; without a text, there is no choice. */
function ask(theirs: Text | undefined): void {
  const isChoice = theirs !== undefined;
  const choice = isChoice ? sentence`Somebody changed this plant meanwhile: ${theirs}.` : '';
  setText('edit-choice', choice);
  setText('edit-cancel', isChoice ? 'Keep theirs' : 'Cancel');
  setText('edit-save', isChoice ? 'Save mine' : 'Save');
  if (isChoice) byId('edit-cancel', HTMLButtonElement).focus();
}

function textOf({ name, tag }: Plant): Text {
  return tag === '' ? sentence`“${name}”` : sentence`“${name}” (${tag})`;
}
