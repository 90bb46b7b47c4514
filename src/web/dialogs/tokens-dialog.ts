/**
 * The dialog about the tokens of the user: creates one, which it shows once, and revokes them.
 */
import type { NewToken, OwnToken, PlantStore, Scope } from '../../client/client.ts';
import type { Connection } from '../session/connection.ts';
import type { Question } from '../shared/confirm.ts';
import { byId, copy, element, onPress, setText, show } from '../shared/dom.ts';
import { toast } from '../shared/toast.ts';
import { drawEntries, MenuDialog, nameOf } from './menu-dialog.ts';
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

export class TokensDialog extends MenuDialog {
  /** Called when the token of the page is revoked. */
  readonly #onOwnEnd: () => Promise<void>;
  readonly #label = byId('tokens-label', HTMLInputElement);
  readonly #expiry = byId('tokens-expiry', HTMLSelectElement);
  readonly #scopes = byId('tokens-scopes', HTMLFieldSetElement);

  constructor(connection: Connection, onOwnEnd: () => Promise<void>) {
    super('tokens', connection, lostText);
    this.#onOwnEnd = onOwnEnd;
    onPress('tokens-copy', async () => {
      const isCopied = await copy(byId('tokens-secret', HTMLElement).textContent);
      const failure = 'The browser does not allow the page to copy. Select the token.';
      setText('tokens-copied', isCopied ? 'Copied.' : failure);
    });
    onPress('tokens-hide', () => {
      this.#showSecret('');
      this.#label.focus();
    });
  }

  protected prepare(): void {
    const { scopes, expiresAt } = this.connection.info;
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
    // Only what ends before the token of the page.
    const days = lifetimes.filter(
      (each) => expiresAt === undefined || Date.now() + each * dayMs < Date.parse(expiresAt),
    );
    this.#expiry.replaceChildren(
      element('option', { value: '' }, untilText(expiresAt)),
      ...days.map((each) => element('option', { value: String(each) }, `for ${each} days`)),
    );
    this.#drawForm();
  }

  protected async load(): Promise<void> {
    const tokens = await this.run((store) => store.listTokens());
    const { active = [], ended = [] } = Object.groupBy(tokens, ({ state }) =>
      state === 'active' ? 'active' : 'ended',
    );
    active.sort((one, other) => Number(other.current) - Number(one.current));
    const entriesOf = (all: OwnToken[]) => all.map((token) => this.#entry(token));
    drawEntries('tokens-active', entriesOf(active));
    drawEntries('tokens-ended', entriesOf(ended));
    show('tokens-ended-list', ended.length > 0);
  }

  protected async send(): Promise<string> {
    const wanted = this.#wanted();
    if (wanted.scopes?.length === 0) {
      this.form.fault('scopes', 'Choose at least one.');
      return '';
    }
    await this.change(async (store) => {
      const { token } = await store.createToken(wanted);
      this.#label.value = '';
      this.#showSecret(token);
      if (this.dialog.open) byId('tokens-copy', HTMLButtonElement).focus();
      else toast('The token is created. Open Tokens in your menu to copy it.');
    });
    return '';
  }

  #wanted(): NewToken {
    const boxes = [...this.#scopes.querySelectorAll('input')];
    const chosen = boxes.filter(({ checked }) => checked).map(({ value }) => value);
    return {
      scopes: this.connection.info.scopes.filter((scope) => chosen.includes(scope)),
      label: this.#label.value,
      ...(this.#expiry.value !== '' && {
        expiresAt: new Date(Date.now() + Number(this.#expiry.value) * dayMs).toISOString(),
      }),
    };
  }

  #entry(token: OwnToken): HTMLElement {
    const facts = element('p', { className: 'entry-facts hint' }, factsOf(token));
    const title = titleOf(token);
    if (token.state !== 'active') return element('li', {}, nameOf(title), facts);
    const revoke = this.entryButton(
      ['Revoke', title],
      () => questionAbout(token),
      (store) => this.#revoke(store, token),
      `Revoked “${title}”.`,
    );
    const badge = element('span', { className: 'badge' }, 'this page');
    return element('li', {}, nameOf(title), ...(token.current ? [badge] : []), revoke, facts);
  }

  async #revoke(store: PlantStore, { id, current }: OwnToken): Promise<void> {
    if (!current) return store.revokeToken(id);
    await store.revokeOwnToken();
    await this.#onOwnEnd();
  }

  #showSecret(token: string): void {
    setText('tokens-secret', token);
    setText('tokens-copied', '');
    this.#drawForm();
  }

  /** While there is a secret to save, it replaces the form. */
  #drawForm(): void {
    const { canCreateTokens } = this.connection;
    const hasSecret = byId('tokens-secret', HTMLElement).textContent !== '';
    show('tokens-new', hasSecret);
    show('tokens-form', !hasSecret && canCreateTokens);
    show('tokens-lead', canCreateTokens);
    show('tokens-refused', !canCreateTokens);
  }
}

function questionAbout(token: OwnToken): Question {
  const action = 'Revoke';
  if (!token.current) {
    const text = 'Everything that uses it stops working. You cannot undo this.';
    return { title: `Revoke the token “${titleOf(token)}”?`, text, action };
  }
  const unsaved = byId('tokens-new', HTMLElement).hidden ? '' : ' Save the new token first.';
  const text = `This page signs out, and everything else that uses the token stops working.${unsaved}`;
  return { title: 'Revoke the token of this page?', text, action };
}
