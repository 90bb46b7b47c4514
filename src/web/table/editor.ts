/**
 * The fields that replace the row of a plant. They are above the table, because its rows exist only while they are
 * visible. A change is saved only if nobody else has changed the plant meanwhile; otherwise, the user chooses.
 */
import type { Plant, PlantPatch, PlantStore } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { optionalTexts } from '../../client/types.ts';
import { byId, joined, onPress, sentence, setText, show, type Text } from '../shared/dom.ts';
import { Form, textInputs } from '../shared/form.ts';
import { announce, toast } from '../shared/toast.ts';
import { ifFound } from './delete-plants.ts';
import { rowFields } from './plant-list.ts';

interface EditorActions {
  /** Called with the plant as it is now in the service. */
  onRead: (plant: Plant) => void;
  /** Called if the plant is gone. */
  onGone: (plant: Plant) => void;
}

export class Editor {
  readonly element = byId('edit', HTMLElement);
  /** The plant that is edited, as its row showed it. */
  plant: Plant | undefined;
  readonly #store: PlantStore;
  readonly #actions: EditorActions;
  readonly #name = byId('edit-name', HTMLInputElement);
  readonly #inputs = textInputs('edit');
  readonly #form = new Form('edit', () => this.#save());
  /** The plant as it was when it was last read, and its entity tag. */
  #read: { plant: Plant; etag: string } | undefined;

  constructor(store: PlantStore, actions: EditorActions) {
    this.#store = store;
    this.#actions = actions;
    onPress('edit-cancel', () => this.#close());
    this.element.addEventListener('keydown', ({ key, isComposing }) => {
      if (key === 'Escape' && !isComposing) this.#close();
    });
  }

  /** Reads the plant, because its row can be minutes old. */
  async open(plant: Plant): Promise<void> {
    if (this.#isChanged) return this.#name.focus(); // what was typed is not lost
    this.plant = plant;
    this.#read = undefined;
    this.element.ariaLabel = `Edit plant ${plant.id}`;
    this.#form.clear();
    this.#ask(undefined);
    this.#fill(plant);
    show('edit');
    this.#name.focus();
    const current = await this.#reread(plant);
    if (this.plant !== plant || current === undefined) return;
    this.#fill(current);
    this.#name.select();
  }

  closeUnlessChanged(): void {
    if (!this.#isChanged) this.#close();
  }

  get #isChanged(): boolean {
    const before = this.#read?.plant;
    if (before === undefined) return false;
    return this.#inputs.some(({ field, input }) => input.value !== before[field]);
  }

  #close(): void {
    this.plant = undefined;
    this.#read = undefined;
    show('edit', false);
  }

  /** Fields that are not read yet cannot be changed. */
  #fill(plant: Plant): void {
    for (const { field, input } of this.#inputs) {
      input.value = plant[field];
      input.readOnly = this.#read === undefined;
    }
  }

  /** Gets the plant as it is now. If it is gone, the editor closes. */
  async #reread(plant: Plant): Promise<Plant | undefined> {
    const read = await ifFound(this.#store.getWithETag(plant.id, { fields: rowFields }));
    if (read === undefined) {
      this.#actions.onGone(plant);
      if (this.plant === plant) this.#close();
      toast(sentence`Someone has deleted “${plant.name}”, or no longer shares it with you.`);
      return undefined;
    }
    this.#actions.onRead(read.plant);
    if (this.plant === plant) this.#read = read;
    return read.plant;
  }

  async #save(): Promise<void> {
    const { plant } = this;
    if (plant === undefined || this.#read === undefined) return;
    if (!this.#isChanged) return this.#close();
    const { plant: before, etag } = this.#read;
    const name = this.#name.value;
    const patch: PlantPatch = {};
    for (const { field, input } of this.#inputs) {
      if (input.value !== before[field]) patch[field] = input.value;
    }
    const options = { ifMatch: etag, fields: rowFields };
    try {
      this.#actions.onRead(await this.#store.update(plant.id, patch, options));
    } catch (error) {
      const isLate = isProblem(error, 'precondition-failed');
      const isReadOnly = isProblem(error, 'plant-read-only');
      if (!isLate && !isReadOnly && !isProblem(error, 'plant-not-found')) throw error;
      const theirs = await this.#reread(plant);
      if (theirs === undefined) return;
      if (!isLate) throw error;
      if (this.plant !== plant) return; // the user has left meanwhile
      if (this.#read?.etag === etag) throw error; // nobody has changed the plant: a proxy changes entity tags
      // Only what this user has changed is theirs to choose about.
      for (const { field, input } of this.#inputs) {
        if (patch[field] === undefined) input.value = theirs[field];
      }
      if (this.#isChanged) return this.#ask(textOf(theirs));
    }
    if (this.plant === plant) this.#close();
    announce(sentence`Saved “${name}”.`);
  }

  /** Lets the user choose between their text and the one of somebody else; without a text, there is no choice. */
  #ask(theirs: Text | undefined): void {
    const isChoice = theirs !== undefined;
    setText(
      'edit-choice',
      isChoice ? sentence`Somebody changed this plant meanwhile: ${theirs}.` : '',
    );
    setText('edit-cancel', isChoice ? 'Keep theirs' : 'Cancel');
    setText('edit-save', isChoice ? 'Save mine' : 'Save');
    if (isChoice) byId('edit-cancel', HTMLButtonElement).focus();
  }
}

function textOf(plant: Plant): Text {
  const others = optionalTexts.map((field) => plant[field]).filter((text) => text !== '');
  const { name } = plant;
  return others.length === 0 ? sentence`“${name}”` : sentence`“${name}” (${joined(others, ', ')})`;
}
