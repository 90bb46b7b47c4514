/**
 * One row of the table. Its plant can change, because rows above it can be removed.
 */
import type { Plant } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { textFields } from '../../client/types.ts';
import { element, fill, icon } from '../shared/dom.ts';
import { isWritable } from './plant-list.ts';

export type Row = ReturnType<typeof createRow>;

function cell(className: string, ...content: HTMLElement[]): HTMLElement {
  return element('span', { className, role: 'gridcell' }, ...content);
}

/** Creates the row with this index, from 0. */
export function createRow(index: number) {
  const ariaRowIndex = String(index + 2); // the head is the first row
  const checkbox = element('input', { type: 'checkbox', tabIndex: -1 });
  const tagButton = element('button', { className: 'tag-button', type: 'button', tabIndex: -1 });
  const editClass = 'edit quiet square';
  const editButton = element('button', { className: editClass, type: 'button', tabIndex: -1 });
  editButton.append(icon('edit'));
  const [idCell, ownerCell] = [cell('id'), cell('owner')];
  const texts = new Map(textFields.map((field) => [field, cell(field)]));
  texts.get('tag')?.append(tagButton);
  const row = element(
    'div',
    { id: `row-${index}`, className: 'row', role: 'row', ariaRowIndex },
    cell('check', checkbox),
    idCell,
    ...texts.values(),
    ownerCell,
    cell('action', editButton),
  );
  let shown: Plant | undefined;

  function drawPlant(plant: Plant): void {
    const { id, name, tag, owner } = (shown = plant);
    idCell.textContent = String(id);
    for (const [field, place] of texts) fill(field === 'tag' ? tagButton : place, plant[field]);
    tagButton.hidden = tag === '';
    tagButton.ariaLabel = printable(`Show only the tag ${tag}`);
    fill(ownerCell, owner);
    checkbox.ariaLabel = printable(`Select ${name}`);
    editButton.ariaLabel = printable(`Edit ${name}`);
    for (const control of [checkbox, editButton]) control.hidden = !isWritable(plant);
  }

  return {
    index,
    element: row,
    /** Draws a plant. The keyboard is in the active row. */
    draw(plant: Plant, isSelected: boolean, isActive: boolean): void {
      if (plant !== shown) drawPlant(plant);
      checkbox.checked = isSelected;
      row.ariaSelected = String(isSelected);
      row.classList.toggle('active', isActive);
    },
  };
}
