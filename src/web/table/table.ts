/**
 * The table of plants: a grid whose rows exist only while they are visible. The focus stays on the grid itself, and
 * `aria-activedescendant` names the active row, so that no focus is lost when a row scrolls away.
 */
import type { Plant } from '../../client/client.ts';
import { byId, inNextFrame } from '../shared/dom.ts';
import type { Editor } from './editor.ts';
import { isWritable, type PlantList } from './plant-list.ts';
import { Row } from './row.ts';
import type { Selection } from './selection.ts';

/** Rows that are drawn above and below the visible ones, so that a scroll shows them at once. */
const spareRows = 8;

interface TableActions {
  open: (plant: Plant) => void;
  filter: (tag: string) => void;
  delete: (plants: Plant[]) => void;
}

export class Table {
  readonly refresh = inNextFrame(() => this.#draw());
  readonly #grid = byId('grid', HTMLElement);
  readonly #spacer = byId('spacer', HTMLElement);
  readonly #body = byId('rows', HTMLElement);
  /** The rows that exist, by their index. */
  readonly #rows = new Map<number, Row>();
  readonly #selection: Selection;
  readonly #editor: Editor;
  readonly #actions: TableActions;
  #list: PlantList | undefined;
  #rowPx = 0;
  #activeIndex = 0;
  /** Where a range that Shift extends begins, as long as it is selected. It is a plant, because rows move. */
  #anchor: Plant | undefined;

  constructor(selection: Selection, editor: Editor, actions: TableActions) {
    this.#selection = selection;
    this.#editor = editor;
    this.#actions = actions;
    this.#grid.addEventListener('scroll', () => this.#draw());
    this.#body.addEventListener('click', (event) => this.#pressed(event));
    this.#grid.addEventListener('keydown', (event) => this.#keyPressed(event));
    const observer = new ResizeObserver(() => this.refresh());
    for (const each of [this.#grid, editor.element]) observer.observe(each);
  }

  /** Shows another list, from its beginning. */
  show(list: PlantList): void {
    this.#list = list;
    this.#activeIndex = 0;
    this.#anchor = undefined;
    this.#editor.closeUnlessChanged();
    this.#grid.scrollTop = 0;
    this.refresh();
  }

  focus(): void {
    this.#grid.focus();
  }

  /** Turns the row of a plant into fields. */
  edit(plant: Plant): void {
    void this.#editor.open(plant);
    this.refresh();
  }

  #draw(): void {
    const list = this.#list;
    if (list === undefined || this.#grid.clientHeight === 0) return;
    const rowPx = this.#measureRow();
    const { count, isComplete } = list;
    this.#spacer.style.height = `${count * rowPx}px`;
    this.#grid.ariaRowCount = String(isComplete ? count + 1 : -1);
    this.#grid.ariaBusy = String(count === 0 && !isComplete);

    const { scrollTop } = this.#grid;
    const first = Math.floor(scrollTop / rowPx);
    const end = Math.ceil((scrollTop + this.#viewPx) / rowPx);
    const lastDrawn = Math.min(count, end + spareRows);
    this.#drawRows(Math.max(0, first - spareRows), lastDrawn);
    list.see(lastDrawn);
    this.#placeEditor(list);
  }

  /** The editor covers its row, and stays in sight when the row is scrolled away. */
  #placeEditor(list: PlantList): void {
    const { plant, element } = this.#editor;
    const index = plant === undefined ? -1 : list.rowOf(plant);
    if (index === -1) return; // the row is gone, what was typed is not
    const headPx = this.#spacer.offsetTop;
    const topPx = headPx + index * this.#rowPx - this.#grid.scrollTop;
    const lastTopPx = this.#grid.clientHeight - element.offsetHeight;
    element.style.top = `${Math.max(headPx, Math.min(topPx, lastTopPx))}px`;
  }

  #drawRows(start: number, end: number): void {
    for (const row of this.#rows.values()) {
      if (row.index >= start && row.index < end) continue;
      row.element.remove();
      this.#rows.delete(row.index);
    }
    const plants = this.#list?.slice(start, end) ?? [];
    // From the last one, so that each new row finds its place before the next one.
    for (let index = end - 1; index >= start; index--) {
      const plant = plants[index - start];
      if (plant === undefined) continue;
      this.#rowAt(index).draw(plant, this.#selection.has(plant), index === this.#activeIndex);
    }
    this.#body.style.transform = `translateY(${start * this.#rowPx}px)`;
    const isActiveDrawn = this.#rows.has(this.#activeIndex);
    if (isActiveDrawn) this.#grid.setAttribute('aria-activedescendant', `row-${this.#activeIndex}`);
    else this.#grid.removeAttribute('aria-activedescendant');
  }

  #rowAt(index: number): Row {
    const existing = this.#rows.get(index);
    if (existing !== undefined) return existing;
    const row = new Row(index);
    this.#rows.set(index, row);
    this.#body.insertBefore(row.element, this.#rows.get(index + 1)?.element ?? null);
    return row;
  }

  /** The height of the visible rows, which are below the head. */
  get #viewPx(): number {
    return this.#grid.clientHeight - this.#spacer.offsetTop;
  }

  #measureRow(): number {
    const [row = this.#rowAt(0)] = this.#rows.values();
    return (this.#rowPx = Math.max(1, row.element.offsetHeight));
  }

  #pressed(event: MouseEvent): void {
    const { target } = event;
    const row = this.#rows
      .values()
      .find((each) => target instanceof Node && each.element.contains(target));
    const plant = row && this.#plantAt(row.index);
    if (row === undefined || plant === undefined) return;
    this.#activeIndex = row.index;
    this.#grid.focus({ preventScroll: true }); // the keyboard continues from here
    const isIn = (selector: string) =>
      target instanceof Element && target.closest(selector) !== null;
    if (isIn('.check')) this.#select(plant, event.shiftKey);
    else if (isIn('.edit')) this.edit(plant);
    else if (isIn('.tag-button')) this.#actions.filter(plant.tag);
    else this.#actions.open(plant);
    this.refresh();
  }

  #keyPressed(event: KeyboardEvent): void {
    const { count } = this.#list ?? { count: 0 };
    if (count === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    let index = this.#destination(event.key, count);
    if (index !== undefined) {
      if (!event.shiftKey) this.#anchor = undefined;
      else {
        this.#anchor = this.#rangeStart ?? this.#plantAt(this.#activeIndex);
        if (!this.#selectRange(this.#plantAt(index))) index = this.#activeIndex;
      }
      this.activate(index);
    } else if (!this.#acted(event)) return;
    event.preventDefault();
  }

  #destination(key: string, count: number): number | undefined {
    const page = Math.max(1, Math.floor(this.#viewPx / this.#rowPx) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (key === 'Home') return 0;
    if (key === 'End') return count - 1;
    const step = steps[key as keyof typeof steps] as number | undefined; // other keys have none
    return step && Math.max(0, Math.min(count - 1, this.#activeIndex + step));
  }

  /** Whether the key did something with the active plant. */
  #acted({ key, shiftKey, repeat }: KeyboardEvent): boolean {
    const plant = this.#plantAt(this.#activeIndex);
    if (plant === undefined) return false;
    if (key === 'Enter') this.#actions.open(plant);
    else if (key === 'Escape') this.#selection.clear();
    else if (key === ' ') this.#select(plant, shiftKey);
    else if (key === 'F2' && isWritable(plant)) this.edit(plant);
    else if (key === 'Delete' || key === 'Backspace') {
      const { plants } = this.#selection;
      const chosen = plants.length > 0 ? plants : [plant].filter(isWritable);
      // A key that is held down must not delete one row after another.
      if (chosen.length > 0 && !repeat) this.#actions.delete(chosen);
    } else return false;
    return true;
  }

  #plantAt(index: number): Plant | undefined {
    return this.#list?.slice(index, index + 1)[0];
  }

  get #rangeStart(): Plant | undefined {
    return this.#selection.has(this.#anchor) ? this.#anchor : undefined;
  }

  #select(plant: Plant, isRange: boolean): void {
    if (isRange && this.#rangeStart !== undefined) this.#selectRange(plant);
    else {
      this.#selection.toggle(plant);
      this.#anchor = plant;
    }
  }

  /** Adds the rows between the anchor and this one. Returns false if it could not add all of them. */
  #selectRange(plant: Plant | undefined): boolean {
    if (this.#anchor === undefined || plant === undefined) return false;
    return this.#selection.add(this.#list?.between(this.#anchor.id, plant.id) ?? []);
  }

  /** Moves the keyboard to this row, and scrolls to it. */
  activate(index: number): void {
    this.#activeIndex = index;
    const { scrollTop } = this.#grid;
    const [rowTop, rowEnd] = [index * this.#rowPx, (index + 1) * this.#rowPx];
    if (rowTop < scrollTop) this.#grid.scrollTop = rowTop;
    else if (rowEnd > scrollTop + this.#viewPx) this.#grid.scrollTop = rowEnd - this.#viewPx;
    this.refresh();
  }
}
