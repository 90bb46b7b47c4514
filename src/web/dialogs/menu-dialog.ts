/**
 * A dialog of a menu: a form, and lists that it loads again after each change.
 */
import type { PlantStore, Scope, Token } from '../../client/client.ts';
import type { Connection } from '../session/connection.ts';
import { printable } from '../../client/printable.ts';
import { confirm, type Question } from '../shared/confirm.ts';
import { byId, element, joined, onPress, type Text } from '../shared/dom.ts';
import { Form, whileBusy } from '../shared/form.ts';

export abstract class MenuDialog {
  protected readonly connection: Connection;
  protected readonly dialog: HTMLDialogElement;
  protected readonly form: Form;
  readonly #lists: HTMLElement;
  readonly #menu: HTMLElement;
  readonly #opener: HTMLElement;
  #last: Promise<unknown> = Promise.resolve();

  /** The menu that the dialog is opened from, and its button: those of the user by default. */
  constructor(
    name: string,
    connection: Connection,
    [menu, opener]: readonly [string, string] = ['identity', 'who'],
  ) {
    this.#menu = byId(menu, HTMLElement);
    this.#opener = byId(opener, HTMLElement);
    this.connection = connection;
    this.dialog = byId(name, HTMLDialogElement);
    this.form = new Form(name, () => this.send());
    this.#lists = byId(`${name}-lists`, HTMLElement);
    onPress(`${name}-close`, () => this.dialog.close());
  }

  /** Shows what the token of the page allows. */
  protected abstract prepare(info: Token): void;
  /** Loads and draws the lists. */
  protected abstract load(): Promise<void>;
  /** Sends the form. Can return what the user is told. */
  protected abstract send(): Promise<Text | void>;

  async open(): Promise<void> {
    const { info } = this.connection;
    if (info === undefined) return; // the menu is hidden
    this.prepare(info);
    this.#menu.hidePopover();
    this.#opener.focus(); // it gets the focus back
    this.dialog.showModal();
    await whileBusy(this.#lists, () => this.form.run(() => this.load()));
  }

  /** Whether the token of the page grants this. */
  protected can(scope: Scope): boolean {
    return this.connection.info?.scopes.includes(scope) === true;
  }

  /** Runs a task after the ones before, so that no list is older than a change that it should show. */
  protected async run<T>(task: (store: PlantStore) => Promise<T>): Promise<T> {
    const turn = this.#last.then(() => task(this.connection.store));
    this.#last = turn.catch(() => {}); // whoever began it handles the error
    return turn;
  }

  /** Changes something, and shows what the service then has. */
  protected async change<T>(task: (store: PlantStore) => Promise<T>): Promise<T> {
    try {
      return await this.run(task);
    } finally {
      await this.load();
    }
  }

  /**
   * A button of an entry, with a short text, and a name for screen readers that begins with it. The task returns what
   * the user is told. If there is a question, the user has to agree first.
   */
  protected entryButton(
    [text, name]: [string, string],
    task: () => Promise<Text>,
    question?: () => Question,
  ): HTMLButtonElement {
    const ariaLabel = printable(`${text} ${name}`);
    const button = element('button', { type: 'button', ariaLabel }, text);
    const press = async () => {
      const asks = question !== undefined && button.ariaBusy !== 'true';
      if (asks && !(await confirm(question()))) return;
      await whileBusy(button, () => this.form.run(task));
    };
    button.addEventListener('click', () => void press());
    return button;
  }
}

/** Replaces the entries of a list. A focus in it stays at its control, or moves to what takes its place. */
export function drawEntries(id: string, entries: readonly HTMLElement[]): void {
  const list = byId(id, HTMLElement);
  const { activeElement } = document;
  const at = [...list.children].findIndex((entry) => entry.contains(activeElement));
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
  const hint = element('p', { className: 'entry-facts hint' }, joined(facts, ' · '));
  return element('li', {}, nameOf(name), ...controls, hint);
}

/** Whatever the text consists of, it has its own direction, and its spaces can be seen. */
export function nameOf(text: Text): HTMLElement {
  return element('bdi', { className: 'entry-name' }, text);
}
