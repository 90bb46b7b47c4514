/**
 * The dialog about the tokens of the user: creates one, which it shows once, and revokes them.
 */
import {
  PlantStoreError,
  type Fault,
  type NewToken,
  type OwnToken,
  type Scope,
  type Token,
} from '../../client/client.ts';
import { act } from '../shared/banner.ts';
import { confirm, type Question } from '../shared/confirm.ts';
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
import { toast } from '../shared/toast.ts';
import { factsOf, titleOf, untilText } from './token-texts.ts';

const scopeTexts: Record<Scope, string> = {
  'plants:read': 'See plants',
  'plants:write': 'Add and delete plants',
  'shares:write': 'Share plants',
};

const dayMs = 86_400_000;
/** How long a new token can be valid, in days, besides as long as the token of the page. */
const lifetimes = [7, 30, 90, 365];

const lostText =
  'The response was lost. If there is a new token in the list, nobody knows it: revoke it, and create another.';

export class TokensDialog {
  readonly #connection: Connection;
  readonly #requests: Requests;
  /** Called when the token of the page is revoked. */
  readonly #onOwnEnd: () => void;
  readonly #dialog = byId('tokens', HTMLDialogElement);
  readonly #label = byId('tokens-label', HTMLInputElement);
  readonly #expiry = byId('tokens-expiry', HTMLSelectElement);
  readonly #scopes = byId('tokens-scopes', HTMLFieldSetElement);
  readonly #submit = byId('tokens-submit', HTMLButtonElement);
  readonly #active = byId('tokens-active', HTMLElement);
  readonly #ended = byId('tokens-ended', HTMLElement);
  /** The number of times the tokens were loaded. Only the last ones are shown. */
  #loads = 0;

  constructor(connection: Connection, onOwnEnd: () => void) {
    this.#connection = connection;
    this.#requests = new Requests(connection, this.#dialog);
    this.#onOwnEnd = onOwnEnd;
    onPress('tokens-close', () => this.#dialog.close());
    onPress('tokens-copy', () => copySecret());
    onPress('tokens-hide', () => {
      this.#showSecret('');
      this.#label.focus();
    });
    byId('tokens-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#create();
    });
    this.use(connection.info);
  }

  /** Shows the tokens of the user of this token from now on. */
  use({ scopes }: Token): void {
    this.#requests.reset();
    this.#dialog.close();
    this.#showSecret('');
    this.#draw([]);
    this.#drawScopes(scopes);
  }

  async open(): Promise<void> {
    if (this.#dialog.open) return; // pressed twice while its file was loaded
    this.#clearMessages();
    this.#draw([]);
    setText('tokens-hint', 'Loading …');
    this.#drawLifetimes();
    this.#drawForm(); // the page can have another token of the same user
    openFromMenu(this.#dialog);
    await this.#load();
  }

  async #load(): Promise<void> {
    const load = ++this.#loads;
    try {
      const tokens = await this.#requests.run((store) => store.listTokens());
      if (load === this.#loads) this.#draw(tokens);
    } catch (error) {
      setText('tokens-hint', '');
      this.#requests.fail(error, showFailure);
    }
  }

  async #create(): Promise<void> {
    if (this.#submit.ariaBusy === 'true') return act(); // there is no need to wait
    this.#clearMessages();
    const wanted = this.#wanted();
    if (wanted.scopes?.length === 0) {
      setText('tokens-scopes-fault', 'Choose at least one.');
      return this.#scopes.querySelector('input')?.focus();
    }
    this.#submit.ariaBusy = 'true';
    try {
      // A repeated request could create a second token, which nobody knows.
      const { token, ...made } = await this.#requests.run((store) => store.createToken(wanted), {
        once: true,
      });
      this.#label.value = '';
      this.#active.prepend(this.#item(made));
      this.#drawHint();
      this.#showSecret(token);
      if (this.#dialog.open) byId('tokens-copy', HTMLButtonElement).focus();
      else toast('The token is created. Open Tokens in your menu to copy it.');
    } catch (error) {
      this.#requests.fail(error, (text, { errors, outcomeUnknown }) =>
        this.#showFaults(outcomeUnknown ? lostText : text, errors),
      );
      if (error instanceof PlantStoreError && error.outcomeUnknown) await this.#load();
    } finally {
      this.#submit.ariaBusy = null;
    }
  }

  #wanted(): NewToken {
    const checked = [...this.#scopes.querySelectorAll('input')].filter((box) => box.checked);
    return {
      scopes: this.#connection.info.scopes.filter((scope) =>
        checked.some(({ value }) => value === scope),
      ),
      label: this.#label.value,
      ...(this.#expiry.value !== '' && {
        expiresAt: new Date(Date.now() + Number(this.#expiry.value) * dayMs).toISOString(),
      }),
    };
  }

  async #revoke(token: OwnToken, entry: Entry, button: HTMLButtonElement): Promise<void> {
    const isOwn = token.id === this.#connection.info.id;
    if (!(await confirm(questionAbout(token, isOwn), this.#requests.signal))) return;
    this.#clearMessages();
    entry.fault = '';
    button.ariaBusy = 'true';
    try {
      await this.#requests.run(async (store) => {
        await store.revokeToken(token.id).catch((error: unknown) => {
          const isRevoked = error instanceof PlantStoreError && error.status === 401;
          if (!isOwn || !isRevoked) throw error; // an earlier response was lost
        });
      });
      if (isOwn) return this.#onOwnEnd();
      entry.remove();
      const revokedAt = new Date().toISOString();
      this.#ended.prepend(this.#item({ ...token, state: 'revoked', revokedAt }));
      show('tokens-ended-list');
      this.#drawHint();
      setText('tokens-done', `Revoked “${titleOf(token)}”.`);
    } catch (error) {
      this.#requests.fail(error, (fault) => (entry.fault = fault));
    } finally {
      button.ariaBusy = null;
    }
  }

  #draw(tokens: OwnToken[]): void {
    const isActive = ({ state }: OwnToken) => state === 'active';
    const currentFirst = tokens.toSorted((a, b) => Number(b.current) - Number(a.current));
    const active = currentFirst.filter(isActive);
    const ended = tokens.filter((token) => !isActive(token));
    this.#active.replaceChildren(...active.map((token) => this.#item(token)));
    this.#ended.replaceChildren(...ended.map((token) => this.#item(token)));
    show('tokens-ended-list', ended.length > 0);
    this.#drawHint();
  }

  #drawHint(): void {
    setText('tokens-hint', this.#active.childElementCount === 0 ? 'You have no token.' : '');
  }

  #item(token: OwnToken): HTMLElement {
    const facts = element('p', { className: 'entry-facts hint' }, factsOf(token));
    const badge = element('span', { className: 'badge' }, 'this page');
    const name = nameOf(titleOf(token));
    if (token.state !== 'active') return new Entry(name, facts).item;
    const revoke = entryButton('Revoke', titleOf(token), (button) =>
      this.#revoke(token, entry, button),
    );
    const entry = new Entry(name, ...(token.current ? [badge] : []), revoke, facts);
    return entry.item;
  }

  #drawScopes(scopes: readonly Scope[]): void {
    const boxes = scopes.map((value) =>
      element(
        'label',
        { className: 'check' },
        element('input', { type: 'checkbox', value, checked: true }),
        scopeTexts[value],
      ),
    );
    for (const old of this.#scopes.querySelectorAll('label')) old.remove();
    this.#scopes.querySelector('legend')?.after(...boxes);
  }

  /** Offers only what ends before the token of the page. The choice stays if it is still there. */
  #drawLifetimes(): void {
    const { expiresAt } = this.#connection.info;
    const chosen = this.#expiry.value;
    const days = lifetimes.filter(
      (each) => expiresAt === undefined || Date.now() + each * dayMs < Date.parse(expiresAt),
    );
    this.#expiry.replaceChildren(
      element('option', { value: '' }, untilText(expiresAt)),
      ...days.map((each) => element('option', { value: String(each) }, `for ${each} days`)),
    );
    this.#expiry.value = days.some((each) => String(each) === chosen) ? chosen : '';
  }

  #showSecret(token: string): void {
    setText('tokens-secret', token);
    setText('tokens-copied', '');
    this.#drawForm();
  }

  /** While there is a secret to save, it replaces the form. */
  #drawForm(): void {
    const { canCreateTokens } = this.#connection;
    const hasSecret = byId('tokens-secret', HTMLElement).textContent !== '';
    show('tokens-new', hasSecret);
    show('tokens-form', !hasSecret && canCreateTokens);
    show('tokens-lead', canCreateTokens);
    show('tokens-refused', !canCreateTokens);
  }

  /** Shows each fault at its field, and moves to the first one. */
  #showFaults(text: string, faults: readonly Fault[]): void {
    const fields: Record<string, HTMLElement> = {
      '/label': this.#label,
      '/expiresAt': this.#expiry,
    };
    const others = faults.filter(({ pointer, detail }) => {
      const field = fields[pointer ?? ''];
      if (field !== undefined) setFault(field, detail);
      return field === undefined;
    });
    this.#dialog.querySelector<HTMLElement>('[aria-invalid]')?.focus();
    if (faults.length === 0 || others.length > 0) showFailure(text);
  }

  #clearMessages(): void {
    for (const field of [this.#label, this.#expiry]) setFault(field, '');
    for (const id of ['tokens-scopes-fault', 'tokens-done']) setText(id, '');
    show('tokens-failure', false);
  }
}

function showFailure(text: string): void {
  showText('tokens-failure', text);
}

function questionAbout(token: OwnToken, isOwn: boolean): Question {
  const action = 'Revoke';
  if (!isOwn) {
    const text = 'Everything that uses it stops working. You cannot undo this.';
    return { title: `Revoke the token “${titleOf(token)}”?`, text, action };
  }
  const unsaved = byId('tokens-new', HTMLElement).hidden ? '' : ' Save the new token first.';
  const text = `This page signs out, and everything else that uses the token stops working.${unsaved}`;
  return { title: 'Revoke the token of this page?', text, action };
}

async function copySecret(): Promise<void> {
  try {
    await navigator.clipboard.writeText(byId('tokens-secret', HTMLElement).textContent);
    setText('tokens-copied', 'Copied.');
  } catch {
    setText('tokens-copied', 'The browser does not allow the page to copy. Select the token.');
  }
}
