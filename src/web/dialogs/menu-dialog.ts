/**
 * A dialog of a menu: a form, and lists that it loads again after each change.
 */
import type { Token } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { info } from '../session/session.ts';
import { confirm, type Question } from '../shared/confirm.ts';
import { byId, element, joined, show, type Text } from '../shared/dom.ts';
import { Form, whileBusy } from '../shared/form.ts';

/** How many entries a list with a button for more shows, and how many more at each press. */
const moreCount = 50;

interface Parts<Lists> {
  /** Shows what the token of the page allows. */
  prepare: (info: Token) => void;
  /** Reads what the lists show. */
  read: () => Promise<Lists>;
  draw: (lists: Lists) => void;
  /** Sends the form. Can return what the user is told. */
  send: () => Promise<Text | void>;
}

export class MenuDialog<Lists> {
  readonly form: Form;
  readonly #name: string;
  readonly #parts: Parts<Lists>;
  #last: Promise<unknown> = Promise.resolve();
  /** How many entries are shown at most. To know whether there are more, `read` reads one more. */
  maxShown = moreCount;
  #shownCount = 0;

  /** The button NAME-open is in a menu. The element NAME-lists contains the lists. */
  constructor(name: string, parts: Parts<Lists>) {
    this.#name = name;
    this.#parts = parts;
    this.form = new Form(name, parts.send);
  }

  async open(): Promise<void> {
    const name = this.#name;
    if (info === undefined) return; // the menu is hidden
    this.maxShown = moreCount;
    this.#parts.prepare(info);
    const menu = byId(`${name}-open`, HTMLElement).closest('[popover]');
    document.querySelector<HTMLElement>(`[popovertarget=${menu?.id}]`)?.focus(); // it gets the focus back
    byId(name, HTMLDialogElement).showModal();
    await whileBusy(byId(`${name}-lists`, HTMLElement), () => this.form.run(() => this.load()));
  }

  /** Shows what others have changed, if the dialog is open. */
  async refresh(): Promise<void> {
    if (byId(this.#name, HTMLDialogElement).open) await this.load();
  }

  /** Loads and draws the lists. */
  async load(): Promise<void> {
    this.#parts.draw(await this.run(this.#parts.read));
  }

  /** The first entries of a list. The element `more` is shown if there are others. */
  first<T>(entries: readonly T[], more: string): T[] {
    const shown = entries.slice(0, this.maxShown);
    this.#shownCount = shown.length;
    show(more, entries.length > shown.length);
    return shown;
  }

  /** Shows more entries than now. */
  async loadMore(): Promise<void> {
    this.maxShown = this.#shownCount + moreCount;
    await this.load();
  }

  /** Runs a task after the ones before, so that no list is older than a change that it should show. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(task);
    this.#last = turn.catch(() => {}); // whoever began it handles the error
    return turn;
  }

  /** Changes something, and shows what the service then has. */
  async change<T>(task: () => Promise<T>): Promise<T> {
    try {
      return await this.run(task);
    } finally {
      await this.load();
    }
  }

  /** A button of an entry. The task returns what the user is told. If there is a question, the user has to agree first. */
  button(
    [text, name]: [string, string],
    task: () => Promise<Text>,
    question?: () => Question,
  ): HTMLButtonElement {
    const button = buttonOf([text, name], async () => {
      const asks = question !== undefined && button.ariaBusy !== 'true';
      if (asks && !(await confirm(question()))) return;
      await whileBusy(button, () => this.form.run(task));
    });
    return button;
  }

  /** A choice of an entry, with a name for screen readers. `choose` returns what the user is told. */
  choice<Value extends string>(
    name: string,
    texts: Record<Value, string>,
    value: Value,
    choose: (chosen: Value) => Promise<Text>,
  ): HTMLSelectElement {
    const options = Object.entries<string>(texts).map(([each, text]) =>
      element('option', { value: each }, text),
    );
    const select = element('select', { ariaLabel: printable(name) }, ...options);
    select.value = value;
    const change = () => this.form.run(() => choose(select.value as Value)); // one of the options
    select.addEventListener('change', () => void change());
    return select;
  }
}

/** A button of an entry, with a short text, and a name for screen readers that begins with it. */
export function buttonOf(
  [text, name]: [string, string],
  press: () => void | Promise<void>,
): HTMLButtonElement {
  const ariaLabel = printable(`${text} ${name}`);
  const button = element('button', { type: 'button', ariaLabel }, text);
  button.addEventListener('click', () => void press());
  return button;
}

/** Replaces the entries of a list. A focus in it stays at its control, or moves to what takes its place. */
export function drawEntries<T>(
  id: string,
  items: readonly T[],
  draw: (item: T) => HTMLElement,
): void {
  const list = byId(id, HTMLElement);
  const { activeElement } = document;
  const at = [...list.children].findIndex((entry) => entry.contains(activeElement));
  const entries = items.map((item) => draw(item));
  list.replaceChildren(...entries);
  if (at === -1) return;
  const controls = [...list.querySelectorAll<HTMLElement>('button, select')];
  const same = controls.find(({ ariaLabel }) => ariaLabel === activeElement?.ariaLabel);
  const next = (entries[at] ?? entries.at(-1))?.querySelector('button');
  (same ?? next ?? list.closest('section')?.querySelector('h3'))?.focus();
}

/** An entry of a list, with what can be done with it, and with facts below. */
export function entryOf(
  name: Text,
  facts: readonly Text[],
  ...controls: HTMLElement[]
): HTMLElement {
  // Whatever the name consists of, it has its own direction, and its spaces can be seen.
  const entry = element('li', {}, element('bdi', { className: 'entry-name' }, name), ...controls);
  const hint = element('p', { className: 'entry-facts hint' }, joined(facts, ' · '));
  if (facts.length > 0) entry.append(hint);
  return entry;
}
