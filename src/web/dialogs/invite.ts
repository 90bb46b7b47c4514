/**
 * Invites somebody to the store, with a link, its QR code, and a text to send. The dialog keeps them until the manager has
 * sent the link.
 */
import type { Scope, Token, User } from '../../client/client.ts';
import { isLoopback } from '../../client/request.ts';
import { info, store } from '../session/session.ts';
import { serviceUrl } from '../session/connection.ts';
import { confirm } from '../shared/confirm.ts';
import { byId, copy, onPress, sentence, setText, show } from '../shared/dom.ts';
import { newKey } from '../shared/form.ts';
import { formatTime } from '../shared/format.ts';
import { qrCode } from '../shared/qr-code.ts';
import { toast } from '../shared/toast.ts';
import { isUser, offerUsers, refuseName } from './known-users.ts';
import type { MenuDialog } from './menu-dialog.ts';
import { expiryOptions } from './tokens-dialog.ts';

const userField = byId('people-user', HTMLInputElement);
const rightsField = byId('people-rights', HTMLSelectElement);
const usesField = byId('people-uses', HTMLInputElement);
const expiryField = byId('people-expiresAt', HTMLSelectElement);

/** What each choice of index.html grants at most; undefined: everything that the manager has. */
const scopesOf: Record<string, readonly Scope[] | undefined> = {
  member: ['plants:read', 'plants:write', 'shares:write'],
  reader: ['plants:read'],
};

/** What is to be sent, and to whom; empty if nothing is. */
let [link, message, invited] = ['', '', ''];

onPress('invite-copy', () => tellCopied(link));
onPress('invite-copy-text', () => tellCopied(message));
onPress('invite-share', () => navigator.share({ text: message }));
show('invite-share', 'share' in navigator);
// The link is for other devices too.
show('invite-local', isLoopback(serviceUrl));
onPress('invite-hide', () => {
  hideInvitation(invited);
  userField.focus();
});

/** Somebody can stay as long as the manager can. */
export function prepareInvitation({ expiresAt, renewableUntil = expiresAt }: Token): void {
  expiryField.replaceChildren(...expiryOptions(renewableUntil, 'until you remove them'));
}

export async function invite(dialog: MenuDialog<User[]>): Promise<void> {
  const user = userField.value.trim();
  const { value: rights } = rightsField;
  const own = info?.scopes ?? [];
  const scopes = own.filter((scope) => scopesOf[rights]?.includes(scope) ?? true);
  if (scopes.length === 0) {
    dialog.form.fault('rights', 'You cannot do this yourself.');
    return;
  }
  try {
    if ((await isUser(user)) && !(await confirm(questionAbout(user)))) return;
  } catch (error) {
    return refuseName(dialog.form, user, error);
  }
  const expiresAt = expiryField.value || info?.renewableUntil;
  const uses = usesField.valueAsNumber;
  const terms = { scopes, invitation: { uses }, ...(expiresAt !== undefined && { expiresAt }) };
  const idempotencyKey = newKey();
  await dialog.change(async () => {
    const { token, expiresAt: end = '' } = await store.createTokenFor(user, terms, {
      idempotencyKey,
    });
    if (rights === 'manager') await store.setRole(user, 'manager');
    void offerUsers();
    const times = uses === 1 ? 'once' : `${uses} times`;
    const until = `It works ${times}, until ${formatTime(end)}.`;
    const about = sentence`Send this link to “${user}”, or let them scan the code. ${until}`;
    setText('invite-about', about);
    link = `${serviceUrl.href}#token=${token}`;
    message = `Join the store “${info?.store}” as “${user}”: ${link}\n${until}`;
    invited = user;
    showInvitation();
    void qrCode(link).then((code) => byId('invite-code', HTMLElement).replaceChildren(code));
    userField.value = '';
    const copyButton = byId('invite-copy', HTMLButtonElement);
    if (copyButton.checkVisibility()) copyButton.focus();
    else toast('The invitation is ready. To copy it, open People in your menu.');
  });
}

function questionAbout(user: string) {
  return {
    title: sentence`Create another link for “${user}”?`,
    text: 'This user is in the store already. Who opens the link gets their plants and shares. To invite somebody else, choose another name.',
    action: 'Create the link',
  };
}

/** Shows the form again in place of what is to be sent to this user. */
export function hideInvitation(user: string): void {
  if (user !== invited) return;
  [link, message, invited] = ['', '', ''];
  showInvitation();
}

/** Shows what is to be sent in place of the form, or the form again if nothing is. */
function showInvitation(): void {
  setText('invite-code', '');
  setText('invite-link', link);
  setText('invite-copied', '');
  show('invite-new', link !== '');
  show('people-form', link === '');
}

async function tellCopied(text: string): Promise<void> {
  const failure = 'The browser did not allow copying. Select the link and copy it.';
  setText('invite-copied', (await copy(text)) ? 'Copied.' : failure);
}
