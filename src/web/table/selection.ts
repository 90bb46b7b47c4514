/**
 * The selected plants, and the bar that replaces the toolbar while there are any.
 */
import type { Plant } from '../../client/client.ts';
import { byId, changed, setText, show } from '../shared/dom.ts';
import { countOf, formatCount } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { isWritable, type PlantList } from './plant-list.ts';
import { list, view } from './plants.ts';

/** Each is a request, and another one to undo it. */
const maxSelected = 10_000;

/** By their ids. */
const selected = new Map<number, Plant>();
let listOfSelected: PlantList | undefined;

/** The checkbox in the head of the table. */
const box = byId('select-all', HTMLInputElement);
box.addEventListener('click', () => {
  if (box.checked) selectRows();
  else clearSelection();
});

export function drawSelection(): void {
  if (list !== listOfSelected) selected.clear();
  listOfSelected = list;
  // Others change and delete plants too. What has no row must not be deleted with the others.
  for (const id of selected.keys()) {
    const plant = list?.find(id);
    if (plant === undefined) selected.delete(id);
    else selected.set(id, plant);
  }
  const { size } = selected;
  const isAll = size > 0 && size === list?.plants.filter(isWritable).length;
  box.checked = isAll;
  box.indeterminate = size > 0 && !isAll;
  setText('selection-count', `${countOf(size, 'plant')} selected`);
  const { total, isComplete = false } = list ?? {};
  const isFiltered = (view.tag ?? view.q) !== undefined;
  setText(
    'selection-all',
    `Select all ${formatCount(total ?? 0)}${isFiltered ? ' that match' : ''}`,
  );
  show('selection-all', total !== undefined && !(isAll && isComplete));
  show('selection', size > 0);
  show('toolbar', size === 0);
}

export function selectedPlants(): Plant[] {
  return [...selected.values()];
}

export function isSelected(plant: Plant | undefined): boolean {
  return plant !== undefined && selected.has(plant.id);
}

export function toggle(plant: Plant): void {
  if (selected.delete(plant.id)) changed();
  else select([plant]);
}

/** Adds all that the user can change, or says why it adds none. */
export function select(plants: readonly Plant[]): boolean {
  const added = plants.filter((plant) => isWritable(plant) && !isSelected(plant));
  const isTooMuch = selected.size + added.length > maxSelected;
  if (isTooMuch) refuse();
  else for (const plant of added) selected.set(plant.id, plant);
  changed();
  return !isTooMuch;
}

/** Selects the rows that were read. */
export function selectRows(): void {
  select(list?.plants ?? []);
}

/** Selects all plants of the view. Reads those that the table does not have yet. */
export async function selectAll(): Promise<void> {
  const all = list;
  if (all?.total === undefined) return;
  if (all.total > maxSelected) return refuse();
  all.wantsAll = true;
  all.see(0);
  await all.settled();
  all.wantsAll = false;
  if (list !== all || !all.isComplete || !select(all.plants)) return;
  const others = all.count - selected.size;
  if (others > 0)
    toast(`Not selected, because you can only see them: ${countOf(others, 'plant')}.`);
}

function refuse(): void {
  const most = countOf(maxSelected, 'plant');
  toast(`Nothing was selected: you can select up to ${most} at a time. Search for some of them.`);
}

export function clearSelection(): void {
  selected.clear();
  changed();
}
