/**
 * One row of the table. Its plant can change, because rows above it can be removed.
 */
import type { Plant } from '../../client/client.ts';
import { element } from '../shared/dom.ts';

export class Row {
  /** From 0. */
  readonly index: number;
  readonly element: HTMLDivElement;
  readonly #checkbox = element('input', { type: 'checkbox', tabIndex: -1 });
  readonly #id = element('span', { className: 'id', role: 'gridcell' });
  readonly #name = element('span', { className: 'name', role: 'gridcell' });
  readonly #tag = element('button', { className: 'tag-button', type: 'button', tabIndex: -1 });
  #plant: Plant | undefined;

  constructor(index: number) {
    this.index = index;
    const ariaRowIndex = String(index + 2); // the head is the first row
    this.element = element(
      'div',
      { id: `row-${index}`, className: 'row', role: 'row', ariaRowIndex },
      element('span', { className: 'check', role: 'gridcell' }, this.#checkbox),
      this.#id,
      this.#name,
      element('span', { className: 'tag', role: 'gridcell' }, this.#tag),
    );
    this.#drawPlant(undefined);
  }

  /** Undefined is a plant that is loading. `states` are classes of the row, and whether it has them. */
  draw(plant: Plant | undefined, isSelected: boolean, states: Record<string, boolean>): void {
    if (plant !== this.#plant) this.#drawPlant(plant);
    this.#checkbox.checked = isSelected;
    this.element.ariaSelected = String(isSelected);
    for (const [name, isOn] of Object.entries(states)) this.element.classList.toggle(name, isOn);
  }

  #drawPlant(plant: Plant | undefined): void {
    this.#plant = plant;
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
