/**
 * The search box. It searches while the user types: the next search begins when the answer to the last one is there, and
 * is for the text that the box has then.
 */
import { byId } from '../shared/dom.ts';
import { announce } from '../shared/toast.ts';
import type { PlantList } from './plant-list.ts';
import { list, search, view } from './plants.ts';
import { isText } from './view.ts';

const input = byId('search-input', HTMLInputElement);
let isBusy = false;
/** What was searched last; undefined if all plants are shown. */
let searched: string | undefined;
/** The list whose text the box has. */
let drawn: PlantList | undefined;

input.addEventListener('input', () => void searchTyped());
byId('search', HTMLFormElement).addEventListener('submit', (event) => event.preventDefault());

/** Shows the text of the view when another list is shown. Until then, what is being typed is newer. */
export function drawSearchBox(): void {
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
