/**
 * The search box, a combobox. It searches while the user types: the next search begins when the answer to the last one is
 * there, and is for the text that the box has then. Below it are the known tags that contain the text. The one that is
 * chosen becomes a filter, and the box is empty again.
 */
import { fold } from '../../plants/folding.ts';
import { byId, element } from '../shared/dom.ts';
import { formatCount } from '../shared/format.ts';
import { announce } from '../shared/toast.ts';
import type { PlantList } from './plant-list.ts';
import { knownTags, list, search, showOnly, view } from './plants.ts';
import { isText } from './view.ts';

const maxOptions = 8;

const input = byId('search-input', HTMLInputElement);
const listbox = byId('search-tags', HTMLElement);
let isBusy = false;
/** What was searched last; undefined if all plants are shown. */
let searched: string | undefined;
/** The list whose text the box has. */
let drawn: PlantList | undefined;
/** Whether the tags are shown, if there are any. */
let isOpen = false;
/** The tags below the box, and the one that the keyboard has chosen. */
let options: string[] = [];
let active: string | undefined;

input.addEventListener('input', () => {
  open(input.value !== '');
  void searchTyped();
});
input.addEventListener('click', () => open(true));
input.addEventListener('blur', () => open(false));
input.addEventListener('keydown', keyPressed);
listbox.addEventListener('mousedown', (event) => event.preventDefault()); // the box keeps the focus
listbox.addEventListener('click', ({ target }) => {
  const at = [...listbox.children].findIndex(
    (each) => target instanceof Node && each.contains(target),
  );
  choose(options[at]);
});
byId('search', HTMLFormElement).addEventListener('submit', (event) => event.preventDefault());

/** Shows the text of the view when another list is shown. Until then, what is being typed is newer. */
export function drawSearchBox(): void {
  if (isOpen) drawOptions();
  if (list === drawn) return;
  drawn = list;
  if (view.q === searched) return;
  searched = view.q;
  input.value = view.q ?? '';
}

function typed(): string | undefined {
  const text = input.value.trim();
  return isText(text) ? text : undefined;
}

async function searchTyped(): Promise<void> {
  if (isBusy) return;
  isBusy = true;
  try {
    while (typed() !== searched) {
      searched = typed();
      // oxlint-disable-next-line no-await-in-loop -- one at a time
      const isShown = await search(searched);
      const text = list?.count === 0 ? 'no-match-title' : 'store-count';
      if (isShown) announce(byId(text, HTMLElement).textContent);
    }
  } finally {
    isBusy = false;
  }
}

function open(wanted: boolean): void {
  isOpen = wanted;
  active = undefined;
  drawOptions();
}

function keyPressed(event: KeyboardEvent): void {
  if (event.isComposing) return;
  const isShown = isOpen && options.length > 0;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step !== undefined && isShown) {
    // The place after the last tag, and before the first one, is the box itself.
    const at = active === undefined ? options.length : options.indexOf(active);
    active = options[(at + step + options.length + 1) % (options.length + 1)];
    drawOptions();
  } else if (event.key === 'ArrowDown') open(true);
  else if (event.key === 'Escape' && isShown) open(false);
  else if (event.key === 'Enter' && active !== undefined) choose(active);
  else return;
  event.preventDefault();
}

function choose(tag: string | undefined): void {
  if (tag === undefined) return;
  input.value = '';
  open(false);
  showOnly({ ...view, tag, q: undefined });
}

function drawOptions(): void {
  const countOf = counter();
  const tags = isOpen ? tagsFor(input.value.trim()) : [];
  options = tags.filter((tag) => countOf(tag) !== 0).slice(0, maxOptions);
  if (active !== undefined && !options.includes(active)) active = undefined;
  listbox.replaceChildren(
    ...options.map((tag, at) => {
      const count = countOf(tag);
      const hint = element(
        'span',
        { className: 'hint' },
        count === undefined ? '' : formatCount(count),
      );
      const ariaSelected = String(tag === active);
      return element(
        'li',
        { id: `search-tag-${at}`, role: 'option', ariaSelected },
        element('bdi', {}, tag),
        hint,
      );
    }),
  );
  listbox.hidden = options.length === 0;
  input.ariaExpanded = String(!listbox.hidden);
  if (active === undefined) input.removeAttribute('aria-activedescendant');
  else input.setAttribute('aria-activedescendant', `search-tag-${options.indexOf(active)}`);
}

/** Counts the plants with a tag: undefined if the list need not have all of them. */
function counter(): (tag: string) => number | undefined {
  const all =
    isOpen && list?.isComplete === true && view.tag === undefined ? list.plants : undefined;
  const byTag = Map.groupBy(all ?? [], ({ tag }) => tag);
  return (tag) => (all && contains(tag, view.q ?? '') ? (byTag.get(tag)?.length ?? 0) : undefined);
}

/** The known tags that contain a text, first those that begin with it. */
function tagsFor(text: string): string[] {
  const place = (tag: string) => fold(tag).indexOf(fold(text));
  const found = [...knownTags].filter((tag) => place(tag) !== -1).toSorted();
  return found.toSorted((one, other) => Number(place(one) > 0) - Number(place(other) > 0));
}

function contains(tag: string, text: string): boolean {
  return fold(tag).includes(fold(text));
}
