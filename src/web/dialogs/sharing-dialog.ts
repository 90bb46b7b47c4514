/**
 * The dialog about shares: who can access the plants of the user, and whose plants the user can access.
 */
import type { Share, ShareAccess, Token } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import type { Connection } from '../session/connection.ts';
import { byId, element, sentence, setText, show, type Text } from '../shared/dom.ts';
import { drawEntries, MenuDialog, nameOf } from './menu-dialog.ts';

const accessTexts: Record<ShareAccess, string> = {
  read: 'can see',
  write: 'can see, edit and delete',
};

export class SharingDialog extends MenuDialog {
  readonly #onOwners: () => void;
  readonly #user = byId('sharing-user', HTMLInputElement);
  readonly #access = byId('sharing-access', HTMLSelectElement);
  /** Those who share with the user, as far as the table is known to show their plants. */
  #owners = '';

  /** `onOwners` is called when others share with the user than the table shows. */
  constructor(connection: Connection, onOwners: () => void) {
    super('sharing', connection);
    this.#onOwners = onOwners;
  }

  protected prepare(info: Token): void {
    show('sharing-form', this.can('shares:write'));
    show('sharing-refused', !this.can('shares:write'));
    setText('sharing-command', commandOf(info));
  }

  protected async load(): Promise<void> {
    const shares = await this.run((store) => store.listShares());
    drawEntries(
      'sharing-given',
      shares.given.map((share) => this.#givenEntry(share)),
    );
    drawEntries(
      'sharing-received',
      shares.received.map((share) => this.#receivedEntry(share)),
    );
    const owners = shares.received.map(({ user }) => user).join('\n');
    if (owners === this.#owners) return;
    this.#owners = owners;
    this.#onOwners();
  }

  protected async send(): Promise<Text | void> {
    const typed = this.#user.value;
    const user = typed.trim(); // phones and clipboards add spaces
    try {
      const done = await this.#share(user, this.#access);
      if (this.#user.value === typed) this.#user.value = '';
      return typed === user ? done : sentence`${done} The spaces around the name were removed.`;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      // The client refuses names that no URL can contain.
      this.form.fault('user', sentence`The page cannot share with a user called “${user}”.`);
    }
  }

  async #share(user: string, { value }: HTMLSelectElement): Promise<Text> {
    const access = value === 'write' ? 'write' : 'read';
    await this.change((store) => store.share(user, access));
    return sentence`“${user}” ${accessTexts[access]} all your plants.`;
  }

  #givenEntry({ user, access }: Share): HTMLElement {
    const name = `sharing with ${user}`;
    if (!this.can('shares:write')) return this.#entry(user, textOf(accessTexts[access]), name);
    const select = element(
      'select',
      { ariaLabel: printable(`What ${user} can do`) },
      ...Object.entries(accessTexts).map(([value, text]) => element('option', { value }, text)),
    );
    select.value = access;
    const change = () => this.form.run(() => this.#share(user, select));
    select.addEventListener('change', () => void change());
    return this.#entry(user, select, name);
  }

  #receivedEntry({ user, access }: Share): HTMLElement {
    const text = textOf(`you ${accessTexts[access]} their plants`);
    return this.#entry(user, text, `what ${user} shares with you`);
  }

  /** Who shares with whom, and the button that ends what has this name. */
  #entry(user: string, access: HTMLElement, name: string): HTMLElement {
    if (!this.can('shares:write')) return element('li', {}, nameOf(user), access);
    const question = () => ({
      title: sentence`End sharing with “${user}”?`,
      text: sentence`Sharing ends in both directions. To get back what “${user}” shares with you, ask them to share again.`,
      action: 'End sharing',
    });
    const end = async () => {
      await this.change((store) => store.unshare(user));
      return sentence`You and “${user}” no longer share plants.`;
    };
    const button = this.entryButton(['End', name], end, question);
    return element('li', {}, nameOf(user), access, button);
  }
}

function textOf(text: string): HTMLElement {
  return element('span', { className: 'entry-text' }, text);
}

/** The command that creates a token for the same user, which can also share. */
function commandOf({ user, store, scopes }: Token): string {
  const wanted = [...scopes, 'shares:write'].join();
  return `npx plant-store token create ${quote(user)} --store ${quote(store)} --scope ${wanted}`;
}

function quote(text: string): string {
  return /^[\w.@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
