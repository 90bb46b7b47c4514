/**
 * An entry of a list in a dialog: what it is about, its controls, and below them what went wrong.
 */
import { act } from '../shared/banner.ts';
import { element } from '../shared/dom.ts';

export class Entry {
  readonly item: HTMLLIElement;
  readonly #fault = element('p', { className: 'fault', role: 'alert' });

  constructor(...parts: Node[]) {
    this.item = element('li', {}, ...parts, this.#fault);
  }

  set fault(text: string) {
    this.#fault.textContent = text;
  }

  /** Removes the entry. If it had the focus, one beside it gets it, or else the heading of the list. */
  remove(): void {
    const { item } = this;
    const heading = item.closest('section')?.querySelector('h3');
    const neighbour = item.nextElementSibling ?? item.previousElementSibling;
    const hadFocus = item.contains(document.activeElement);
    item.remove();
    if (hadFocus) (neighbour?.querySelector('button') ?? heading)?.focus();
  }
}

/** A button with a short text, and a name for screen readers that begins with it. While it is busy, it does not act. */
export function entryButton(
  text: string,
  name: string,
  handle: (button: HTMLButtonElement) => Promise<void>,
): HTMLButtonElement {
  const button = element('button', { type: 'button', ariaLabel: `${text} ${name}` }, text);
  button.addEventListener('click', () => {
    if (button.ariaBusy === 'true') act();
    else void handle(button);
  });
  return button;
}

/** Whatever the text consists of, it has its own direction, and its spaces can be seen. */
export function nameOf(text: string): HTMLElement {
  return element('bdi', { className: 'entry-name' }, text);
}
