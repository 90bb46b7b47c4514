/**
 * The dialog about shares: who can access the plants of the user, and whose plants the user can access.
 */
import {
  PlantStoreError,
  type Share,
  type ShareAccess,
  type Shares,
  type Token,
} from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { act } from '../shared/banner.ts';
import { confirm } from '../shared/confirm.ts';
import type { Connection } from '../session/connection.ts';
import {
  byId,
  element,
  onPress,
  openFromMenu,
  setFault,
  setText,
  show,
  showText,
} from '../shared/dom.ts';
import { Entry, entryButton, nameOf } from './entry.ts';
import { Requests } from './requests.ts';

const trimmedText = 'The spaces around the name were removed.';
const accessTexts: Record<ShareAccess, string> = { read: 'can see', write: 'can see and delete' };

/** Somebody with whom the user shares. */
interface Given {
  entry: Entry;
  select: HTMLSelectElement;
  /** What the service has. The select can show another choice while it is busy. */
  access: ShareAccess;
}

export class SharingDialog {
  readonly #requests: Requests;
  readonly #onOwners: () => void;
  readonly #dialog = byId('sharing', HTMLDialogElement);
  readonly #user = byId('sharing-user', HTMLInputElement);
  readonly #access = byId('sharing-access', HTMLSelectElement);
  readonly #submit = byId('sharing-submit', HTMLButtonElement);
  readonly #given = new Map<string, Given>();
  readonly #received = new Map<string, Entry>();
  #canList = false;
  #canShare = false;
  /** The number of times the shares were loaded. Only the last ones are shown. */
  #loads = 0;
  /** Those who share with the user, as far as the table is known to show their plants. */
  #owners: ReadonlySet<string> = new Set();

  /** `onOwners` is called when others share with the user than the table shows. */
  constructor(connection: Connection, onOwners: () => void) {
    this.#requests = new Requests(connection, this.#dialog);
    this.#onOwners = onOwners;
    onPress('sharing-close', () => this.#dialog.close());
    byId('sharing-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#share();
    });
    this.use(connection.info);
  }

  /** Shows the shares of the user of this token from now on. */
  use(token: Token): void {
    this.#requests.reset();
    this.#dialog.close();
    this.#draw({ given: [], received: [] });
    this.#canShare = token.scopes.includes('shares:write');
    this.#canList = this.#canShare || token.scopes.includes('plants:read');
    this.#owners = new Set();
    show('sharing-form', this.#canShare);
    show('sharing-refused', !this.#canShare);
    show('sharing-lists', this.#canList);
    show('sharing-unlisted', !this.#canList);
    setText('sharing-command', commandOf(token));
  }

  async open(): Promise<void> {
    if (this.#dialog.open) return; // pressed twice while its file was loaded
    this.#clearMessages();
    this.#draw({ given: [], received: [] });
    openFromMenu(this.#dialog);
    if (!this.#canList) return;
    this.#setHints('Loading …', 'Loading …');
    const load = ++this.#loads;
    try {
      const shares = await this.#requests.run((store) => store.listShares());
      if (load !== this.#loads) return;
      this.#draw(shares);
      this.#setOwners(shares.received.map(({ user }) => user));
    } catch (error) {
      this.#setHints('', '');
      this.#requests.fail(error, showFailure);
    }
  }

  async #share(): Promise<void> {
    if (this.#submit.ariaBusy === 'true') return act(); // there is no need to wait
    this.#clearMessages();
    const typed = this.#user.value;
    const user = typed.trim(); // phones and clipboards add spaces
    if (user === '') return this.#userFault('Enter the name of a user.');
    const access = chosen(this.#access);
    this.#submit.ariaBusy = 'true';
    try {
      await this.#requests.run((store) => store.share(user, access));
      if (this.#user.value === typed) this.#user.value = '';
      this.#showGiven({ user, access });
      if (typed !== user) byId('sharing-done', HTMLElement).append(` ${trimmedText}`);
    } catch (error) {
      // The client refuses names that no URL can contain.
      if (error instanceof RangeError) this.#userFault(error.message);
      else {
        const isName = error instanceof PlantStoreError && error.errors.length > 0;
        this.#requests.fail(error, isName ? (text) => this.#userFault(text) : showFailure);
      }
    } finally {
      this.#submit.ariaBusy = null;
    }
  }

  /** Sends the choice of a row, and further choices that are made meanwhile. */
  async #change(user: string, given: Given): Promise<void> {
    const { entry, select } = given;
    if (select.ariaBusy === 'true') return;
    this.#clearMessages();
    entry.fault = '';
    select.ariaBusy = 'true';
    try {
      while (select.value !== given.access) {
        const access = chosen(select);
        await this.#requests.run((store) => store.share(user, access));
        given.access = access;
        this.#showGiven({ user, access });
      }
    } catch (error) {
      select.value = given.access;
      this.#requests.fail(error, (text) => (entry.fault = text));
    } finally {
      select.ariaBusy = null;
    }
  }

  async #endShare(user: string, entry: Entry, button: HTMLButtonElement): Promise<void> {
    const isReceived = this.#received.has(user);
    const question = {
      title: `End sharing with “${user}”?`,
      text: endText(user, { isGiven: this.#given.has(user), isReceived }),
      action: 'End sharing',
    };
    if (!(await confirm(question, this.#requests.signal))) return;
    this.#clearMessages();
    entry.fault = '';
    button.ariaBusy = 'true';
    try {
      await this.#requests.run(async (store) => {
        await store.unshare(user).catch((error: unknown) => {
          if (!isProblem(error, 'share-not-found')) throw error; // the other user has ended it
        });
      });
      this.#removeEntries(user);
      setText('sharing-done', `You and “${user}” share nothing now.`);
      this.#setOwners([...this.#owners].filter((owner) => owner !== user));
    } catch (error) {
      this.#requests.fail(error, (text) => (entry.fault = text));
    } finally {
      button.ariaBusy = null;
    }
  }

  #setOwners(owners: readonly string[]): void {
    const before = this.#owners;
    this.#owners = new Set(owners);
    if (this.#owners.symmetricDifference(before).size > 0) this.#onOwners();
  }

  #draw({ given, received }: Shares): void {
    this.#given.clear();
    this.#received.clear();
    byId('sharing-given', HTMLElement).replaceChildren(
      ...given.map((share) => this.#givenItem(share)),
    );
    byId('sharing-received', HTMLElement).replaceChildren(
      ...received.map((share) => this.#receivedItem(share)),
    );
    this.#drawHints();
  }

  /** Shows a share that has been set, the new ones first. */
  #showGiven(share: Share): void {
    const { user, access } = share;
    const given = this.#given.get(user);
    if (given === undefined) byId('sharing-given', HTMLElement).prepend(this.#givenItem(share));
    else {
      given.access = access;
      if (given.select.ariaBusy !== 'true') given.select.value = access;
    }
    this.#drawHints();
    setText('sharing-done', `“${user}” ${accessTexts[access]} all your plants.`);
  }

  #givenItem({ user, access }: Share): HTMLElement {
    if (!this.#canShare) return new Entry(nameOf(user), textOf(accessTexts[access])).item;
    const select = element(
      'select',
      { ariaLabel: `What ${user} can do` },
      ...Object.entries(accessTexts).map(([value, text]) => element('option', { value }, text)),
    );
    select.value = access;
    const end = entryButton('End', `sharing with ${user}`, (button) =>
      this.#endShare(user, entry, button),
    );
    const entry = new Entry(nameOf(user), select, end);
    const given = { entry, select, access };
    select.addEventListener('change', () => void this.#change(user, given));
    this.#given.set(user, given);
    return entry.item;
  }

  #receivedItem({ user, access }: Share): HTMLElement {
    const text = textOf(`you ${accessTexts[access]} their plants`);
    if (!this.#canShare) return new Entry(nameOf(user), text).item;
    const end = entryButton('End', `what ${user} shares with you`, (button) =>
      this.#endShare(user, entry, button),
    );
    const entry = new Entry(nameOf(user), text, end);
    this.#received.set(user, entry);
    return entry.item;
  }

  #removeEntries(user: string): void {
    this.#given.get(user)?.entry.remove();
    this.#received.get(user)?.remove();
    this.#given.delete(user);
    this.#received.delete(user);
    this.#drawHints();
  }

  #drawHints(): void {
    const isEmpty = (id: string) => byId(id, HTMLElement).childElementCount === 0;
    this.#setHints(
      isEmpty('sharing-given') ? 'You share with nobody.' : '',
      isEmpty('sharing-received') ? 'Nobody shares with you.' : '',
    );
  }

  #setHints(given: string, received: string): void {
    setText('sharing-given-hint', given);
    setText('sharing-received-hint', received);
  }

  #userFault(fault: string): void {
    setFault(this.#user, fault);
    this.#user.focus();
  }

  #clearMessages(): void {
    setFault(this.#user, '');
    setText('sharing-done', '');
    show('sharing-failure', false);
  }
}

function showFailure(text: string): void {
  showText('sharing-failure', text);
}

function chosen({ value }: HTMLSelectElement): ShareAccess {
  return value === 'write' ? 'write' : 'read';
}

function textOf(text: string): HTMLElement {
  return element('span', { className: 'entry-text' }, text);
}

/** The service ends both directions, so that a repeated request never ends another share than the first one. */
function endText(
  user: string,
  { isGiven, isReceived }: { isGiven: boolean; isReceived: boolean },
): string {
  const others = `“${user}” no longer shares with you. Only they can share with you again.`;
  if (!isReceived) return `“${user}” no longer has access to your plants.`;
  return isGiven
    ? `This ends both directions. You no longer share with “${user}”. ${others}`
    : others;
}

/** The command that creates a token for the same user, which can also share. */
function commandOf({ user, store, scopes }: Token): string {
  const wanted = [...scopes, 'shares:write'].join();
  return `npx plant-store token create ${quote(user)} --store ${quote(store)} --scope ${wanted}`;
}

function quote(text: string): string {
  return /^[\w.@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
