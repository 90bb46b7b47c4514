/**
 * The selected plants, and the bar that replaces the toolbar while there are any.
 */
import type { Plant } from '../../client/client.ts';
import { onPress, setText, show } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { isWritable } from './plant-list.ts';

/** No more than this can be deleted by one mistake. */
const maxSelected = 200;

export class Selection {
  readonly #selected = new Map<number, Plant>();
  readonly #onChange: () => void;

  constructor({ onChange, onDelete }: { onChange: () => void; onDelete: () => Promise<void> }) {
    this.#onChange = onChange;
    onPress('selection-clear', () => this.clear());
    onPress('selection-delete', onDelete);
  }

  get plants(): Plant[] {
    return [...this.#selected.values()];
  }

  has(plant: Plant | undefined): boolean {
    return plant !== undefined && this.#selected.has(plant.id);
  }

  toggle(plant: Plant): void {
    if (this.#selected.delete(plant.id)) this.#changed();
    else this.add([plant]);
  }

  /** Adds all that the user can change, or says why it adds none. */
  add(plants: readonly Plant[]): boolean {
    const added = plants.filter((plant) => isWritable(plant) && !this.has(plant));
    if (this.#selected.size + added.length > maxSelected) {
      toast(`Nothing was selected: you can select up to ${maxSelected} plants at a time.`);
      return false;
    }
    for (const plant of added) this.#selected.set(plant.id, plant);
    this.#changed();
    return true;
  }

  clear(): void {
    if (this.#selected.size === 0) return;
    this.#selected.clear();
    this.#changed();
  }

  #changed(): void {
    const count = this.#selected.size;
    setText('selection-count', `${countOf(count, 'plant')} selected`);
    show('selection', count > 0);
    show('toolbar', count === 0);
    this.#onChange();
  }
}
