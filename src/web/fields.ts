/**
 * The fields that the table shows. The browser remembers the choice.
 */
import { byId } from './dom.ts';
import { recall, remember } from './remember.ts';

export const allFields = ['id', 'name', 'tag'] as const;
export type Field = (typeof allFields)[number];

const key = 'plant-store.fields';

export class Fields {
  readonly #boxes = [...document.querySelectorAll<HTMLInputElement>('input[name=field]')];
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    const saved = recall('localStorage', key)?.split(',') ?? allFields;
    const shown = allFields.filter((field) => saved.includes(field));
    for (const box of this.#boxes) {
      box.checked = shown.length === 0 || shown.some((field) => field === box.value);
      box.addEventListener('change', () => this.#changed());
    }
    this.#apply();
  }

  get shown(): Field[] {
    const checked = this.#boxes.filter((box) => box.checked).map((box) => box.value);
    return allFields.filter((field) => checked.includes(field));
  }

  #changed(): void {
    remember('localStorage', key, this.shown.join());
    this.#apply();
    this.#onChange();
  }

  #apply(): void {
    const { shown } = this;
    const grid = byId('grid', HTMLElement);
    for (const field of allFields)
      grid.classList.toggle(`without-${field}`, !shown.includes(field));
    // A table without a field would be empty, so the last one stays.
    for (const box of this.#boxes) box.disabled = box.checked && shown.length === 1;
  }
}
