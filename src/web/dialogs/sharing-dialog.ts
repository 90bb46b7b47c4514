/**
 * The dialog about shares: who can access the plants of the user, and whose plants the user can access.
 */
import type { Share, ShareAccess } from '../../client/client.ts';
import { can, store } from '../session/session.ts';
import { byId, element, sentence, type Text } from '../shared/dom.ts';
import { refreshPlants } from '../table/plants.ts';
import { isUser, offerUsers, refuseName } from './known-users.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

const accessTexts: Record<ShareAccess, string> = {
  read: 'can see',
  write: 'can see, edit and delete',
};

/** In place of the name of a user. */
const everyone = 'everyone in this store';

const userField = byId('sharing-user', HTMLInputElement);
const everyoneBox = byId('sharing-everyone', HTMLInputElement);
const accessField = byId('sharing-access', HTMLSelectElement);

export const sharingDialog = new MenuDialog('sharing', {
  prepare: () => void offerUsers(),
  read: () => Promise.all([store.listShares(), store.teamShare()]),
  draw([{ given, received }, team]) {
    const all: Given[] = team === undefined ? given : [{ access: team }, ...given];
    drawEntries('sharing-given', all, givenEntry);
    drawEntries('sharing-received', received, receivedEntry);
  },
  async send(): Promise<Text | void> {
    const access = accessField.value === 'write' ? 'write' : 'read';
    if (everyoneBox.checked) return share(undefined, access);
    const typed = userField.value;
    const user = typed.trim(); // phones and clipboards add spaces
    try {
      const done = await share(user, access);
      if (userField.value === typed) userField.value = '';
      return typed === user ? done : sentence`${done} The spaces around the name were removed.`;
    } catch (error) {
      refuseName(sharingDialog.form, user, error);
    }
  },
});

everyoneBox.addEventListener('change', () => (userField.disabled = everyoneBox.checked));

/** A share that the user gives to another one, or to everyone. */
interface Given {
  user?: string;
  access: ShareAccess;
}

async function share(user: string | undefined, access: ShareAccess): Promise<Text> {
  await sharingDialog.change(() =>
    user === undefined ? store.shareWithTeam(access) : store.share(user, access),
  );
  const what = `${accessTexts[access]} all your plants`;
  if (user === undefined) return `Everyone in this store ${what}, including people who join later.`;
  const exists = await isUser(user);
  if (exists === true) return sentence`“${user}” ${what}.`;
  const when = exists === false ? 'once' : 'if';
  return sentence`“${user}” ${what} ${when} there is a user with this name.`;
}

function givenEntry({ user, access }: Given): HTMLElement {
  const name = user ?? everyone;
  if (!can('shares:write')) return entryOf(name, [], textOf(accessTexts[access]));
  const choice = sharingDialog.choice(`What ${name} can do`, accessTexts, access, (chosen) =>
    share(user, chosen),
  );
  const button =
    user === undefined ? endForEveryone() : endWith(user, ['End', `sharing with ${user}`]);
  return entryOf(name, [], choice, button);
}

/** Only the other user ends what they share with everyone. */
function receivedEntry({ user, access, team }: Share): HTMLElement {
  const whose = team === true ? 'everyone' : 'you';
  const text = textOf(`${whose} ${accessTexts[access]} their plants`);
  if (team === true || !can('shares:write')) return entryOf(user, [], text);
  return entryOf(user, [], text, endWith(user, ['End', `what ${user} shares with you`]));
}

function endWith(user: string, name: [string, string]): HTMLButtonElement {
  const end = async () => {
    await sharingDialog.change(() => store.unshare(user));
    void refreshPlants(); // a service that keeps no changes has nothing to follow
    return sentence`You and “${user}” no longer share plants.`;
  };
  return sharingDialog.button(name, end, () => ({
    title: sentence`End sharing with “${user}”?`,
    text: sentence`Sharing ends in both directions. To get back what “${user}” shares with you, ask them to share again.`,
    action: 'End sharing',
  }));
}

function endForEveryone(): HTMLButtonElement {
  const end = async () => {
    await sharingDialog.change(() => store.unshareWithTeam());
    return 'You no longer share with everyone.';
  };
  return sharingDialog.button(['End', `sharing with ${everyone}`], end, () => ({
    title: 'End sharing with everyone?',
    text: 'Users with whom you also share by name keep what they can do.',
    action: 'End sharing',
  }));
}

function textOf(text: string): HTMLElement {
  return element('span', { className: 'entry-text' }, text);
}
