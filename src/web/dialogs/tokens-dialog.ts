/**
 * The dialog about the tokens of the user: creates one, which it shows once, and revokes them.
 */
import type { OwnToken, Scope } from '../../client/client.ts';
import { signOut, store } from '../session/session.ts';
import type { Question } from '../shared/confirm.ts';
import { byId, copy, element, onPress, sentence, setText, show } from '../shared/dom.ts';
import { newKey } from '../shared/form.ts';
import { formatTime, rightsText, scopeTexts } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

/** How long a new token can be valid, in days, besides as long as the token of the page. */
const lifetimes = [7, 30, 90, 365];

const labelField = byId('tokens-label', HTMLInputElement);
const expiryField = byId('tokens-expiresAt', HTMLSelectElement);
const secret = byId('tokens-secret', HTMLElement);
let boxes = new Map<Scope, HTMLInputElement>();

export const tokensDialog = new MenuDialog('tokens', {
  prepare({ scopes, expiresAt }) {
    boxes = new Map(
      scopes.map((scope) => [scope, element('input', { type: 'checkbox', checked: true })]),
    );
    byId('tokens-boxes', HTMLElement).replaceChildren(
      ...boxes
        .entries()
        .map(([scope, box]) => element('label', { className: 'check' }, box, scopeTexts[scope])),
    );
    expiryField.replaceChildren(...expiryOptions(expiresAt));
  },
  read: () => store.listTokens(),
  draw(tokens) {
    const isActive = ({ state, invitation }: OwnToken) =>
      state === 'active' && invitation?.uses !== 0;
    const active = tokens.filter(isActive);
    const ended = tokens.filter((token) => !isActive(token));
    active.sort((one, other) => Number(other.current) - Number(one.current));
    drawEntries('tokens-active', active, activeEntry);
    drawEntries('tokens-ended', ended, (token) => entryOf(titleOf(token), factsOf(token)));
    show('tokens-ended-list', ended.length > 0);
  },
  async send() {
    const scopes = [...boxes].filter(([, box]) => box.checked).map(([scope]) => scope);
    if (scopes.length === 0) {
      tokensDialog.form.fault('scopes', 'Choose at least one.');
      return;
    }
    const { value: expiresAt } = expiryField;
    const wanted = { scopes, label: labelField.value, ...(expiresAt !== '' && { expiresAt }) };
    const idempotencyKey = newKey(); // if a response is lost, the repeated request gets the same token
    await tokensDialog.change(async () => {
      const { token } = await store.createToken(wanted, { idempotencyKey });
      labelField.value = '';
      showSecret(token);
      const copyButton = byId('tokens-copy', HTMLButtonElement);
      if (copyButton.checkVisibility()) copyButton.focus();
      else toast('The token is created. To copy it, open Tokens in your menu.');
    });
  },
});

onPress('tokens-copy', async () => {
  const isCopied = await copy(secret.textContent);
  const failure = 'The browser did not allow copying. Select the token and copy it.';
  setText('tokens-copied', isCopied ? 'Copied.' : failure);
});
onPress('tokens-hide', () => {
  showSecret('');
  labelField.focus();
});

/** How long a new token can be valid: at most as long as the token of the page. */
export function expiryOptions(
  expiresAt: string | undefined,
  forever = 'until you revoke it',
): HTMLOptionElement[] {
  const options = lifetimes.map((days) => {
    const end = new Date();
    end.setUTCDate(end.getUTCDate() + days);
    return element('option', { value: end.toISOString() }, `for ${days} days`);
  });
  if (expiresAt === undefined) return [element('option', { value: '' }, forever), ...options];
  const longest = `until ${formatTime(expiresAt)}, like the token of this page`;
  const shorter = options.filter(({ value }) => Date.parse(value) < Date.parse(expiresAt));
  return [element('option', { value: '' }, longest), ...shorter];
}

/** Shows a secret to save in place of the form, or the form again if there is none. */
function showSecret(token: string): void {
  setText('tokens-secret', token);
  setText('tokens-copied', '');
  show('tokens-new', token !== '');
  show('tokens-form', token === '');
}

function activeEntry(token: OwnToken): HTMLElement {
  const { id, current } = token;
  const title = titleOf(token);
  const revoke = async () => {
    await tokensDialog.change(async () => {
      if (!current) return store.revokeToken(id);
      await store.revokeOwnToken();
      await signOut();
    });
    return sentence`Revoked “${title}”.`;
  };
  const button = tokensDialog.button(['Revoke', title], revoke, () => questionAbout(token));
  const badge = element('span', { className: 'badge' }, 'this page');
  return entryOf(title, factsOf(token), ...(current ? [badge] : []), button);
}

function questionAbout(token: OwnToken): Question {
  const action = 'Revoke';
  if (!token.current) {
    const text = 'Everything that uses this token stops working. You cannot undo this.';
    return { title: sentence`Revoke the token “${titleOf(token)}”?`, text, action };
  }
  const unsaved = secret.textContent === '' ? '' : ' Save the new token first.';
  const text = `You are signed out, and everything else that uses this token stops working.${unsaved}`;
  return { title: 'Revoke the token of this page?', text, action };
}

/** What a token is called: its label, or when it was created. */
function titleOf({ label, createdAt, invitation }: OwnToken): string {
  if (label !== '') return label;
  return `${invitation === undefined ? 'Created' : 'Invitation of'} ${formatTime(createdAt)}`;
}

/** What the list shows about a token, besides its label. */
function factsOf(token: OwnToken): string[] {
  const { id, label, scopes, createdAt, expiresAt, revokedAt, lastUsedAt, state, current } = token;
  const { invitation } = token;
  const facts = [rightsText(scopes)];
  if (label !== '') facts.push(`created ${formatTime(createdAt)}`);
  if (invitation?.uses === 0) return [...facts, 'used'];
  const expiry = state === 'expired' ? 'expired' : 'valid until';
  if (revokedAt !== undefined) facts.push(`revoked ${formatTime(revokedAt)}`);
  else if (expiresAt !== undefined) facts.push(`${expiry} ${formatTime(expiresAt)}`);
  else facts.push('does not expire');
  if (lastUsedAt !== undefined) facts.push(`last used ${formatTime(lastUsedAt)}`);
  else if (!current) facts.push('never used');
  return [...facts, id];
}
