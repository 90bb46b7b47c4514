/**
 * The selected plants, and the bar that replaces the toolbar while there are any.
 */
import type { Plant } from '../../client/client.ts';
import { changed, setText, show } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { isWritable, type PlantList } from './plant-list.ts';
import { list } from './plants.ts';

/** No more than this can be deleted by one mistake. */
const maxSelected = 200;

/** By their ids. */
const selected = new Map<number, Plant>();
let listOfSelected: PlantList | undefined;

export function drawSelection(): void {
  if (list !== listOfSelected) selected.clear();
  listOfSelected = list;
  // Others change and delete plants too. What has no row must not be deleted with the others.
  for (const id of selected.keys()) {
    const plant = list?.find(id);
    if (plant === undefined) selected.delete(id);
    else selected.set(id, plant);
  }
  setText('selection-count', `${countOf(selected.size, 'plant')} selected`);
  show('selection', selected.size > 0);
  show('toolbar', selected.size === 0);
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
  if (selected.size + added.length > maxSelected) {
    toast(`Nothing was selected: you can select up to ${maxSelected} plants at a time.`);
    return false;
  }
  for (const plant of added) selected.set(plant.id, plant);
  changed();
  return true;
}

export function clearSelection(): void {
  selected.clear();
  changed();
}
