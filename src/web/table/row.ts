/**
 * One row of the table. Its plant can change, because rows above it can be removed.
 */
import type { Plant } from '../../client/client.ts';
import { textFields } from '../../client/types.ts';
import { element, fill, icon } from '../shared/dom.ts';
import { printable } from '../../client/printable.ts';
import { isWritable } from './plant-list.ts';

export class Row {
  /** From 0. */
  readonly index: number;
  readonly element: HTMLDivElement;
  readonly #checkbox = element('input', { type: 'checkbox', tabIndex: -1 });
  readonly #id = element('span', { className: 'id', role: 'gridcell' });
  readonly #texts = new Map(
    textFields.map((field) => [field, element('span', { className: field, role: 'gridcell' })]),
  );
  readonly #tag = element('button', { className: 'tag-button', type: 'button', tabIndex: -1 });
  readonly #owner = element('span', { className: 'owner', role: 'gridcell' });
  readonly #edit = element(
    'button',
    { className: 'edit quiet square', type: 'button', tabIndex: -1 },
    icon('edit'),
  );
  #plant: Plant | undefined;

  constructor(index: number) {
    this.index = index;
    const ariaRowIndex = String(index + 2); // the head is the first row
    this.element = element(
      'div',
      { id: `row-${index}`, className: 'row', role: 'row', ariaRowIndex },
      element('span', { className: 'check', role: 'gridcell' }, this.#checkbox),
      this.#id,
      ...this.#texts.values(),
      this.#owner,
      element('span', { className: 'action', role: 'gridcell' }, this.#edit),
    );
    this.#texts.get('tag')?.append(this.#tag);
  }

  /** Draws a plant. The keyboard is in the active row. */
  draw(plant: Plant, isSelected: boolean, isActive: boolean): void {
    if (plant !== this.#plant) this.#drawPlant(plant);
    this.#checkbox.checked = isSelected;
    this.element.ariaSelected = String(isSelected);
    this.element.classList.toggle('active', isActive);
  }

  #drawPlant(plant: Plant): void {
    const { id, name, tag, owner } = (this.#plant = plant);
    this.#id.textContent = String(id);
    for (const [field, cell] of this.#texts) fill(field === 'tag' ? this.#tag : cell, plant[field]);
    this.#tag.hidden = tag === '';
    this.#tag.ariaLabel = printable(`Show only the tag ${tag}`);
    fill(this.#owner, owner);
    this.#checkbox.ariaLabel = printable(`Select ${name}`);
    this.#edit.ariaLabel = printable(`Edit ${name}`);
    for (const control of [this.#checkbox, this.#edit]) control.hidden = !isWritable(plant);
  }
}
