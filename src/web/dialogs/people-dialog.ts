/**
 * The dialog about the users of the store, for managers: invites some, changes what they are, and removes others.
 */
import type { Role, User } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { info, store } from '../session/session.ts';
import { byId, element, onPress, sentence, setText, show, type Text } from '../shared/dom.ts';
import { Form } from '../shared/form.ts';
import { countOf, formatTime } from '../shared/format.ts';
import { hideInvitation, invite, prepareInvitation } from './invite.ts';
import { firstUsers, offerUsers } from './known-users.ts';
import { buttonOf, drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

const roleTexts: Record<Role, string> = { member: 'member', manager: 'manager' };

export const peopleDialog: MenuDialog<User[]> = new MenuDialog('people', {
  prepare(token) {
    prepareInvitation(token);
    void offerUsers();
  },
  read: () => firstUsers(peopleDialog.maxShown + 1),
  draw: (users) => drawEntries('people-users', peopleDialog.first(users, 'people-more'), entry),
  send: () => invite(peopleDialog),
});

onPress('people-more', () => peopleDialog.form.run(() => peopleDialog.loadMore()));

function entry(found: User): HTMLElement {
  const { user, role, plants, lastUsedAt, invitations = [] } = found;
  const isSelf = user === info?.user;
  const facts = [countOf(plants, 'plant')];
  if (!isSelf && lastUsedAt !== undefined) facts.push(`last here ${formatTime(lastUsedAt)}`);
  // The service stores the first use with a delay, but who has plants was here.
  else if (!isSelf && plants === 0) facts.push('not here yet');
  // Whoever leaves asks another manager, so that somebody is left.
  if (isSelf) {
    return entryOf(user, facts, element('span', { className: 'badge' }, 'you'));
  }
  const choice = peopleDialog.choice(`Role of ${user}`, roleTexts, role, (chosen) =>
    setRole(user, chosen),
  );
  const buttons = [buttonOf(['Remove', user], () => askToRemove(found))];
  if (invitations.length > 0) {
    facts.push(countOf(invitations.length, 'open invitation'));
    const withdraw = () => withdrawAll(user, invitations);
    buttons.unshift(peopleDialog.button(['Withdraw', `the invitation of ${user}`], withdraw));
  }
  return entryOf(user, facts, choice, ...buttons);
}

async function withdrawAll(user: string, invitations: readonly string[]): Promise<Text> {
  await peopleDialog.change(() => Promise.all(invitations.map((id) => store.revokeToken(id))));
  hideInvitation(user);
  return sentence`No link for “${user}” works any more.`;
}

async function setRole(user: string, role: Role): Promise<Text> {
  await peopleDialog.change(() => store.setRole(user, role));
  return role === 'manager'
    ? sentence`“${user}” can see and change all plants now. To invite others, they need a new invitation.`
    : sentence`“${user}” has only their own plants now, and those that others share.`;
}

const removeDialog = byId('remove', HTMLDialogElement);
const heirField = byId('remove-plants-to', HTMLInputElement);
let remove = async (): Promise<void> => {};
const removal = new Form('remove', () => remove());

/** Asks who gets the plants of a user, if there are any, and removes the user. */
function askToRemove({ user, plants }: User): void {
  if (byId('remove-submit', HTMLButtonElement).ariaBusy === 'true') {
    return removeDialog.showModal(); // it shows whose removal is in progress
  }
  removal.clear();
  heirField.value = info?.user ?? '';
  setText('remove-title', sentence`Remove “${user}”?`);
  const askForHeir = (text: string) => {
    setText('remove-label', text);
    show('remove-heir', text !== '');
  };
  askForHeir(plants === 0 ? '' : `Who gets their ${countOf(plants, 'plant')}`);
  remove = async () => {
    const plantsTo = heirField.checkVisibility() ? heirField.value.trim() : undefined;
    try {
      await peopleDialog.change(() => store.removeUser(user, { plantsTo }));
    } catch (error) {
      if (!isProblem(error, 'user-owns-plants')) throw error;
      askForHeir('Who gets their plants');
      removal.fault('plants-to', 'They have added plants meanwhile.');
      return;
    }
    removeDialog.close();
    byId('people-users-title', HTMLElement).focus();
    const given =
      plantsTo === undefined ? '' : sentence` Their plants belong to “${plantsTo}” now.`;
    void peopleDialog.form.run(async () => sentence`Removed “${user}”.${given}`);
  };
  removeDialog.showModal();
}
