/**
 * The table of plants: a grid whose rows exist only while they are visible. The focus stays on the grid itself, and
 * `aria-activedescendant` names the active row, so that no focus is lost when a row scrolls away.
 */
import type { Plant } from '../../client/client.ts';
import { textFields } from '../../client/types.ts';
import { printable } from '../../client/printable.ts';
import { openPlant } from '../dialogs/plant-dialog.ts';
import { byId, fill, find, inNextFrame } from '../shared/dom.ts';
import { deletePlants } from './delete-plants.ts';
import { edit, edited, editor, keepIfChanged, setPlace } from './editor.ts';
import { isWritable, type PlantList } from './plant-list.ts';
import { list, toggleTag, view } from './plants.ts';
import {
  clearSelection,
  isSelected,
  select,
  selectedPlants,
  selectRows,
  toggle,
} from './selection.ts';

/** Rows that are drawn above and below the visible ones, so that a scroll shows them at once. */
const spareRows = 8;
/** How long a row shows that somebody else has changed it. */
const highlightMs = 3_000;

const grid = byId('grid', HTMLElement);
const head = byId('head', HTMLElement);
const spacer = byId('spacer', HTMLElement);
const body = byId('rows', HTMLElement);
const template = byId('row-template', HTMLTemplateElement);
/** The rows that exist, by the id of their plant: what others add or delete moves them. */
const rows = new Map<number, HTMLElement>();
/** The plant that a row shows, as it was then. */
const drawn = new WeakMap<HTMLElement, Plant>();
const highlighted = new Set<number>();
let rowPx = 0;
let shown: PlantList | undefined;
/** The place of this plant stays where it is on the screen when rows above it appear or disappear; and its row. */
let kept: { plant: Plant; row: number } | undefined;
/** Where a range that Shift extends begins, as long as it is selected. It is a plant, because rows move. */
let anchor: Plant | undefined;
/** The list whose end the keyboard is at, and stays at while more rows are read. */
let toEnd: PlantList | undefined;

const refresh = inNextFrame(draw);
const observer = new ResizeObserver(refresh);
for (const each of [grid, editor]) observer.observe(each);
grid.addEventListener('scroll', draw);
body.addEventListener('pointerover', refresh); // another row can be the one in use
body.addEventListener('mousedown', keepSelection);
body.addEventListener('click', pressed);
grid.addEventListener('keydown', keyPressed);
head.addEventListener('keydown', headKeyPressed);

export function drawTable(): void {
  if (list !== shown) showBeginning();
  const direction = view.sort === '-name' ? 'descending' : 'ascending';
  for (const column of ['id', 'name']) {
    const isSorted = column === (view.sort === undefined ? 'id' : 'name');
    byId(`head-${column}`, HTMLElement).ariaSort = isSorted ? direction : null;
  }
  refresh();
}

/** Shows for a moment that somebody else has changed these plants. */
export function highlight(ids: readonly number[]): void {
  for (const id of ids) highlighted.add(id);
  refresh();
  setTimeout(() => {
    for (const id of ids) highlighted.delete(id);
    refresh();
  }, highlightMs);
}

/** Begins at the first row of another list. */
function showBeginning(): void {
  shown = list;
  kept = undefined;
  toEnd = undefined;
  anchor = undefined;
  keepIfChanged();
  grid.scrollTop = 0;
}

function draw(): void {
  if (list === undefined) return;
  const hasRows = list.count > 0 || list.isComplete; // until then, it is unknown where the edited plant is
  if (edited !== undefined && hasRows && list.find(edited.id) === undefined) setPlace('none');
  if (grid.clientHeight === 0) return;
  const [measured = newRow(0)] = rows.values();
  rowPx = Math.max(1, measured.offsetHeight);
  if (list === toEnd) {
    list.active = Math.max(0, list.count - 1);
    list.isSought = true;
    if (list.isComplete || list.isFull) readToEnd(undefined);
  }
  const { active, count, total, isComplete } = list;
  const moved = kept === undefined ? 0 : list.placeOf(kept.plant) - kept.row;
  const topPx = grid.scrollTop + moved * rowPx; // before the height changes what the browser allows
  spacer.style.height = `${count * rowPx}px`;
  if (moved !== 0) grid.scrollTop = topPx;
  grid.ariaRowCount = String(total === undefined ? -1 : total + 1);
  grid.ariaBusy = String(count === 0 && !isComplete);

  if (list.isSought) reveal(active);
  list.isSought = false;
  const { scrollTop } = grid;
  const first = Math.floor(scrollTop / rowPx);
  const end = Math.ceil((scrollTop + viewPx()) / rowPx);
  kept = rowInUse(list, first, end);
  const lastDrawn = Math.min(count, end + spareRows);
  drawRows(list, Math.max(0, first - spareRows), lastDrawn);
  list.see(lastDrawn);
  placeEditor(list);
}

/** The visible row that is edited, under the pointer or active, or else the first one. */
function rowInUse(plants: PlantList, first: number, end: number): typeof kept {
  const [hovered] = rows.entries().find(([, row]) => row.matches(':hover')) ?? [];
  const [shownActive, shownFirst] = [plants.active, first].map((row) => plants.plants[row]);
  return [edited, plants.find(hovered ?? 0), shownActive, shownFirst]
    .filter((plant) => plant !== undefined)
    .map((plant) => ({ plant, row: plants.rowFrom(plant) }))
    .find(({ row }) => first <= row && row < end);
}

/** The height of the visible rows, which are below the head. */
function viewPx(): number {
  return grid.clientHeight - spacer.offsetTop;
}

/** Scrolls to a row. */
function reveal(index: number): void {
  const [rowTop, rowEnd] = [index * rowPx, (index + 1) * rowPx];
  if (rowTop < grid.scrollTop) grid.scrollTop = rowTop;
  else if (rowEnd > grid.scrollTop + viewPx()) grid.scrollTop = rowEnd - viewPx();
}

function drawRows(plants: PlantList, start: number, end: number): void {
  const { active } = plants;
  const visible = plants.plants.slice(start, end);
  const ids = new Set(visible.map(({ id }) => id));
  for (const [id, row] of rows) {
    if (ids.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  // From the last one, so that each row that is new or has moved finds its place before the next one.
  let next: HTMLElement | null = null;
  for (const [at, plant] of [...visible.entries()].toReversed()) {
    const row: HTMLElement = rows.get(plant.id) ?? newRow(plant.id);
    if (row.nextSibling !== next) body.insertBefore(row, next);
    drawRow(row, plant, start + at);
    next = row;
  }
  body.style.transform = `translateY(${start * rowPx}px)`;
  if (active >= start && active < start + visible.length) {
    grid.setAttribute('aria-activedescendant', `row-${active}`);
  } else grid.removeAttribute('aria-activedescendant');
}

function newRow(id: number): HTMLElement {
  const row = find(document.importNode(template.content, true), '.row', HTMLElement);
  rows.set(id, row);
  body.append(row);
  return row;
}

function drawRow(row: HTMLElement, plant: Plant, index: number): void {
  if (drawn.get(row) !== plant) drawPlant(row, plant);
  drawn.set(row, plant);
  row.id = `row-${index}`;
  row.ariaRowIndex = String(index + 2); // the head is the first row
  const isChosen = isSelected(plant);
  find(row, 'input', HTMLInputElement).checked = isChosen;
  row.ariaSelected = String(isChosen);
  row.classList.toggle('active', index === list?.active);
  row.classList.toggle('changed', highlighted.has(plant.id));
}

function drawPlant(row: HTMLElement, plant: Plant): void {
  const { id, name, tag, owner } = plant;
  fill(find(row, '.id', HTMLElement), String(id));
  fill(find(row, '.owner', HTMLElement), owner);
  for (const field of textFields) {
    const cell = field === 'tag' ? '.tag-button' : `.${field}`;
    fill(find(row, cell, HTMLElement), plant[field]);
  }
  const checkbox = find(row, 'input', HTMLInputElement);
  const tagButton = find(row, '.tag-button', HTMLElement);
  const editButton = find(row, '.edit', HTMLElement);
  checkbox.ariaLabel = printable(`Select ${name}`);
  tagButton.ariaLabel = printable(`Show only the tag ${tag}`);
  editButton.ariaLabel = printable(`Edit ${name}`);
  tagButton.hidden = tag === '';
  for (const control of [checkbox, editButton]) control.hidden = !isWritable(plant);
}

/** The editor covers its row, and stays in sight when the row is scrolled away. */
function placeEditor(plants: PlantList): void {
  if (edited === undefined || plants.find(edited.id) === undefined) return;
  const headPx = spacer.offsetTop;
  const topPx = headPx + plants.rowFrom(edited) * rowPx - grid.scrollTop;
  const isVisible = topPx + rowPx > headPx && topPx < grid.clientHeight;
  setPlace(isVisible ? 'row' : 'scrolled away');
  const lastTopPx = grid.clientHeight - editor.offsetHeight;
  editor.style.marginRight = `${grid.offsetWidth - grid.clientWidth}px`; // the scrollbar
  editor.style.top = `${Math.max(headPx, Math.min(topPx, lastTopPx))}px`;
}

/** With Shift, the browser would select the texts of the rows in between. */
function keepSelection(event: MouseEvent): void {
  if (event.shiftKey) event.preventDefault();
}

function pressed({ target, shiftKey, ctrlKey, metaKey }: MouseEvent): void {
  if (list === undefined || !(target instanceof Element)) return;
  const [id = 0] = rows.entries().find(([, row]) => row.contains(target)) ?? [];
  const plant = list.find(id);
  if (plant === undefined) return;
  const before = list.plants[list.active];
  list.active = list.rowFrom(plant);
  readToEnd(undefined);
  grid.focus({ preventScroll: true }); // the keyboard continues from here
  if (target.closest('.check')) choose(plant, shiftKey);
  else if (ctrlKey || metaKey) choose(plant, false);
  else if (shiftKey) {
    anchor = rangeStart() ?? before;
    selectRange(plant);
  } else if (target.closest('.edit')) void edit(plant);
  else if (target.closest('.tag-button')) toggleTag(plant.tag);
  else void openPlant(plant);
  refresh();
}

function keyPressed(event: KeyboardEvent): void {
  const { key, shiftKey, altKey } = event;
  if (list === undefined || event.target !== grid || altKey) return;
  const active = list.plants[list.active];
  const index = destination(key, list);
  if (event.ctrlKey || event.metaKey) {
    if (key !== 'a') return;
    selectRows();
  } else if (key === 'ArrowUp' && !shiftKey && list.active === 0) {
    find(head, '#sort-name', HTMLElement).focus();
  } else if (index !== undefined) {
    anchor = shiftKey ? (rangeStart() ?? active) : undefined;
    if (!shiftKey || selectRange(list.plants[index])) list.active = index;
    list.isSought = true;
    readToEnd(key === 'End' && !shiftKey ? list : undefined);
    refresh();
  } else if (active === undefined || !acted(event, active)) return;
  event.preventDefault();
}

/** The head is a row above the first one, whose controls are reached with the arrows, so that Tab leaves the table. */
function headKeyPressed(event: KeyboardEvent): void {
  const controls = [...head.querySelectorAll<HTMLElement>('input, button')];
  const at = controls.findIndex((control) => control === event.target);
  const targets = { ArrowLeft: controls[at - 1], ArrowRight: controls[at + 1], ArrowDown: grid };
  const target = targets[event.key as keyof typeof targets]; // other keys have none
  if (target === undefined) return;
  target.focus();
  event.preventDefault();
}

/** Reads on to the end of the list, or no further than the table shows. */
function readToEnd(wanted: PlantList | undefined): void {
  if (toEnd) toEnd.wantsAll = false;
  toEnd = wanted;
  if (toEnd) toEnd.wantsAll = true;
}

/** The row that a key moves the keyboard to. */
function destination(key: string, { active, count }: PlantList): number | undefined {
  if (count === 0) return undefined;
  const page = Math.max(1, Math.floor(viewPx() / rowPx) - 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  const step = steps[key as keyof typeof steps] as number | undefined; // other keys have none
  return step && Math.max(0, Math.min(count - 1, active + step));
}

/** Whether the key did something with the active plant. */
function acted({ key, shiftKey, repeat }: KeyboardEvent, plant: Plant): boolean {
  if (key === 'Enter') void openPlant(plant);
  else if (key === 'Escape') clearSelection();
  else if (key === ' ') choose(plant, shiftKey);
  else if (key === 'F2' && isWritable(plant)) void edit(plant);
  else if (key === 'Delete' || key === 'Backspace') {
    const selected = selectedPlants();
    const chosen = selected.length > 0 ? selected : [plant].filter(isWritable);
    // A key that is held down must not delete one row after another.
    if (chosen.length > 0 && !repeat) void deletePlants(chosen);
  } else return false;
  return true;
}

function rangeStart(): Plant | undefined {
  return isSelected(anchor) ? anchor : undefined;
}

function choose(plant: Plant, isRange: boolean): void {
  if (isRange && rangeStart() !== undefined) selectRange(plant);
  else {
    toggle(plant);
    anchor = plant;
  }
}

/** Adds the rows between the anchor and this one. Returns false if it could not add all of them. */
function selectRange(plant: Plant | undefined): boolean {
  if (anchor === undefined || plant === undefined) return false;
  return select(list?.between(anchor, plant) ?? []);
}
