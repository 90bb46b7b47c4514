/**
 * The search box. It searches while the user types: the next search begins when the answer to the last one is there, and
 * is for the text that the box has then.
 */
import { byId } from '../shared/dom.ts';
import { isText } from './view.ts';

export class SearchBox {
  readonly #input = byId('search-input', HTMLInputElement);
  readonly #find: (text: string | undefined) => Promise<void>;
  #isBusy = false;
  /** What was searched last; undefined if all plants are shown. */
  #text: string | undefined;

  /** `find` shows the plants that contain a text, or all of them. */
  constructor(find: (text: string | undefined) => Promise<void>) {
    this.#find = find;
    this.#input.addEventListener('input', () => void this.#search());
    byId('search', HTMLFormElement).addEventListener('submit', (event) => event.preventDefault());
  }

  /** Shows a text that is searched already. */
  set(text: string | undefined): void {
    if (this.#text === text) return; // what is being typed is newer
    this.#text = text;
    this.#input.value = text ?? '';
  }

  get #wanted(): string | undefined {
    const text = this.#input.value.trim();
    return isText(text) ? text : undefined;
  }

  async #search(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      while (this.#wanted !== this.#text) {
        this.#text = this.#wanted;
        // oxlint-disable-next-line no-await-in-loop -- one at a time
        await this.#find(this.#text);
      }
    } finally {
      this.#isBusy = false;
    }
  }
}
