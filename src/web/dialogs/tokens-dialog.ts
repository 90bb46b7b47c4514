/**
 * The dialog about the tokens of the user: creates one, which it shows once, and revokes them.
 */
import type { OwnToken, PlantStore, Scope, Token } from '../../client/client.ts';
import type { Connection } from '../session/connection.ts';
import type { Question } from '../shared/confirm.ts';
import { byId, copy, element, onPress, sentence, setText, show } from '../shared/dom.ts';
import { formatTime, rightsText, scopeTexts } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

/** How long a new token can be valid, in days, besides as long as the token of the page. */
const lifetimes = [7, 30, 90, 365];

export class TokensDialog extends MenuDialog {
  /** Called when the token of the page is revoked. */
  readonly #onOwnEnd: () => Promise<void>;
  readonly #label = byId('tokens-label', HTMLInputElement);
  readonly #expiry = byId('tokens-expiresAt', HTMLSelectElement);
  #boxes = new Map<Scope, HTMLInputElement>();

  constructor(connection: Connection, onOwnEnd: () => Promise<void>) {
    super('tokens', connection);
    this.#onOwnEnd = onOwnEnd;
    onPress('tokens-copy', async () => {
      const isCopied = await copy(byId('tokens-secret', HTMLElement).textContent);
      const failure = 'The browser did not allow copying. Select the token and copy it.';
      setText('tokens-copied', isCopied ? 'Copied.' : failure);
    });
    onPress('tokens-hide', () => {
      this.#showSecret('');
      this.#label.focus();
    });
  }

  protected prepare({ scopes, expiresAt }: Token): void {
    this.#boxes = new Map(
      scopes.map((scope) => [scope, element('input', { type: 'checkbox', checked: true })]),
    );
    byId('tokens-boxes', HTMLElement).replaceChildren(
      ...this.#boxes
        .entries()
        .map(([scope, box]) => element('label', { className: 'check' }, box, scopeTexts[scope])),
    );
    const options = lifetimes.map((days) => {
      const end = new Date();
      end.setUTCDate(end.getUTCDate() + days);
      return element('option', { value: end.toISOString() }, `for ${days} days`);
    });
    this.#expiry.replaceChildren(
      element('option', { value: '' }, untilText(expiresAt)),
      // Only what ends before the token of the page.
      ...options.filter(
        ({ value }) => expiresAt === undefined || Date.parse(value) < Date.parse(expiresAt),
      ),
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

  protected async send(): Promise<void> {
    const scopes = [...this.#boxes].filter(([, box]) => box.checked).map(([scope]) => scope);
    if (scopes.length === 0) {
      this.form.fault('scopes', 'Choose at least one.');
      return;
    }
    const wanted = {
      scopes,
      label: this.#label.value,
      ...(this.#expiry.value !== '' && { expiresAt: this.#expiry.value }),
    };
    await this.change(async (store) => {
      const { token } = await store.createToken(wanted);
      this.#label.value = '';
      this.#showSecret(token);
      if (this.dialog.open) byId('tokens-copy', HTMLButtonElement).focus();
      else toast('The token is created. To copy it, open Tokens in your menu.');
    });
  }

  #entry(token: OwnToken): HTMLElement {
    const title = titleOf(token);
    if (token.state !== 'active') return entryOf(title, factsOf(token));
    const revoke = async () => {
      await this.change((store) => this.#revoke(store, token));
      return sentence`Revoked “${title}”.`;
    };
    const button = this.entryButton(['Revoke', title], revoke, () => questionAbout(token));
    const badge = element('span', { className: 'badge' }, 'this page');
    return entryOf(title, factsOf(token), ...(token.current ? [badge] : []), button);
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
    const text = 'Everything that uses this token stops working. You cannot undo this.';
    return { title: sentence`Revoke the token “${titleOf(token)}”?`, text, action };
  }
  const unsaved = byId('tokens-new', HTMLElement).hidden ? '' : ' Save the new token first.';
  const text = `You are signed out, and everything else that uses this token stops working.${unsaved}`;
  return { title: 'Revoke the token of this page?', text, action };
}

/** What a token is called: its label, or its id. */
function titleOf({ label, id }: OwnToken): string {
  return label === '' ? id : label;
}

/** What the list shows about a token, besides its label. */
function factsOf(token: OwnToken): string[] {
  const { id, scopes, createdAt, expiresAt, revokedAt, lastUsedAt, state, current } = token;
  const facts = [rightsText(scopes), `created ${formatTime(createdAt)}`];
  const expiry = state === 'expired' ? 'expired' : 'valid until';
  if (revokedAt !== undefined) facts.push(`revoked ${formatTime(revokedAt)}`);
  else if (expiresAt !== undefined) facts.push(`${expiry} ${formatTime(expiresAt)}`);
  else facts.push('does not expire');
  if (lastUsedAt !== undefined) facts.push(`last used ${formatTime(lastUsedAt)}`);
  else if (!current) facts.push('never used');
  if (token.label !== '') facts.push(id);
  return facts;
}

/** How long a token is valid that expires with this one. */
function untilText(expiresAt: string | undefined): string {
  if (expiresAt === undefined) return 'until you revoke it';
  return `until ${formatTime(expiresAt)}, like the token of this page`;
}
