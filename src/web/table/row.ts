/**
 * One row of the table. Rows are reused for other plants while the table scrolls.
 */
import { element } from '../shared/dom.ts';
import type { Plant } from './plant-list.ts';

export interface RowState {
  /** From 0. */
  index: number;
  /** Undefined while it is loading. */
  plant: Plant | undefined;
  isSelected: boolean;
  /** Whether the keyboard is at this row. */
  isActive: boolean;
  /** Whether the user has just added it. */
  isNew: boolean;
}

export class Row {
  readonly element: HTMLDivElement;
  readonly #checkbox = element('input', { type: 'checkbox', tabIndex: -1 });
  readonly #id = element('span', { className: 'id', role: 'gridcell' });
  readonly #name = element('span', { className: 'name', role: 'gridcell' });
  readonly #tag = element('button', { className: 'tag-button', type: 'button', tabIndex: -1 });
  #state: RowState | undefined;

  constructor() {
    this.element = element(
      'div',
      { className: 'row', role: 'row' },
      element('span', { className: 'check', role: 'gridcell' }, this.#checkbox),
      this.#id,
      this.#name,
      element('span', { className: 'tag', role: 'gridcell' }, this.#tag),
    );
  }

  /** The index of the row that was drawn last. */
  get index(): number {
    return this.#state?.index ?? 0;
  }

  draw(state: RowState): void {
    const before = this.#state;
    this.#state = state;
    const { index, plant, isSelected, isActive, isNew } = state;
    if (before?.index !== index) {
      this.element.id = `row-${index}`;
      this.element.ariaRowIndex = String(index + 2); // the head is the first row
    }
    if (before === undefined || before.plant !== plant) this.#drawPlant(plant);
    this.#checkbox.checked = isSelected;
    this.element.ariaSelected = String(isSelected);
    this.element.classList.toggle('active', isActive);
    this.element.classList.toggle('new', isNew);
  }

  #drawPlant(plant: Plant | undefined): void {
    const { id, name, tag } = plant ?? { id: '', name: '', tag: '' };
    this.element.classList.toggle('loading', plant === undefined);
    this.#id.textContent = String(id);
    this.#name.textContent = name;
    this.#tag.textContent = tag;
    this.#tag.hidden = tag === '';
    this.#tag.ariaLabel = `Show only the tag ${tag}`;
    this.#checkbox.ariaLabel = plant === undefined ? 'Loading' : `Select ${name}`;
    this.#checkbox.disabled = plant === undefined;
  }
}
