/**
 * The chosen plants, and the bar that replaces the toolbar while there are any.
 */
import { onPress, setText, show } from './dom.ts';
import { plantCount } from './format.ts';
import type { Plant } from './plant-pages.ts';
import { toast } from './toast.ts';

/** When the page is closed, a browser still sends this many requests. */
export const maxChosen = 200;

export class Selection {
  readonly #chosen = new Map<number, Plant>();
  readonly #onChange: () => void;

  constructor({ onChange, onDelete }: { onChange: () => void; onDelete: () => void }) {
    this.#onChange = onChange;
    onPress('selection-clear', () => this.clear());
    onPress('selection-delete', onDelete);
  }

  get plants(): Plant[] {
    return [...this.#chosen.values()];
  }

  has(plant: Plant | undefined): boolean {
    return plant !== undefined && this.#chosen.has(plant.id);
  }

  toggle(plant: Plant): void {
    if (this.#chosen.delete(plant.id)) this.#changed();
    else this.add([plant]);
  }

  add(plants: Iterable<Plant>): void {
    for (const plant of plants) {
      if (this.#chosen.size === maxChosen && !this.#chosen.has(plant.id)) {
        toast(`You can choose up to ${maxChosen} plants at a time.`);
        break;
      }
      this.#chosen.set(plant.id, plant);
    }
    this.#changed();
  }

  clear(): void {
    if (this.#chosen.size === 0) return;
    this.#chosen.clear();
    this.#changed();
  }

  #changed(): void {
    const count = this.#chosen.size;
    setText('selection-count', `${plantCount(count)} chosen`);
    show('selection', count > 0);
    show('toolbar', count === 0);
    this.#onChange();
  }
}
