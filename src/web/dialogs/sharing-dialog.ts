/**
 * The dialog about shares: who can access the plants of the user, and whose plants the user can access.
 */
import type { Share, ShareAccess, Token } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { can, store } from '../session/session.ts';
import { byId, element, sentence, setText, type Text } from '../shared/dom.ts';
import { refreshPlants } from '../table/plants.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

const accessTexts: Record<ShareAccess, string> = {
  read: 'can see',
  write: 'can see, edit and delete',
};

const userField = byId('sharing-user', HTMLInputElement);
const accessField = byId('sharing-access', HTMLSelectElement);

export const sharingDialog = new MenuDialog('sharing', {
  prepare: (info) => setText('sharing-command', commandOf(info)),
  read: () => store.listShares(),
  draw({ given, received }) {
    drawEntries('sharing-given', given, givenEntry);
    drawEntries('sharing-received', received, receivedEntry);
  },
  async send(): Promise<Text | void> {
    const typed = userField.value;
    const user = typed.trim(); // phones and clipboards add spaces
    try {
      const done = await share(user, accessField);
      if (userField.value === typed) userField.value = '';
      return typed === user ? done : sentence`${done} The spaces around the name were removed.`;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      // The client refuses names that no URL can contain.
      sharingDialog.form.fault(
        'user',
        sentence`The page cannot share with a user called “${user}”.`,
      );
    }
  },
});

async function share(user: string, { value }: HTMLSelectElement): Promise<Text> {
  const access = value === 'write' ? 'write' : 'read';
  await sharingDialog.change(() => store.share(user, access));
  return sentence`“${user}” ${accessTexts[access]} all your plants.`;
}

function givenEntry({ user, access }: Share): HTMLElement {
  const name = `sharing with ${user}`;
  if (!can('shares:write')) return shareEntry(user, textOf(accessTexts[access]), name);
  const select = element(
    'select',
    { ariaLabel: printable(`What ${user} can do`) },
    ...Object.entries(accessTexts).map(([value, text]) => element('option', { value }, text)),
  );
  select.value = access;
  const change = () => sharingDialog.form.run(() => share(user, select));
  select.addEventListener('change', () => void change());
  return shareEntry(user, select, name);
}

function receivedEntry({ user, access }: Share): HTMLElement {
  const text = textOf(`you ${accessTexts[access]} their plants`);
  return shareEntry(user, text, `what ${user} shares with you`);
}

/** Who shares with whom, and the button that ends what has this name. */
function shareEntry(user: string, access: HTMLElement, name: string): HTMLElement {
  if (!can('shares:write')) return entryOf(user, [], access);
  const end = async () => {
    await sharingDialog.change(() => store.unshare(user));
    void refreshPlants(); // a service that keeps no changes has nothing to follow
    return sentence`You and “${user}” no longer share plants.`;
  };
  const button = sharingDialog.button(['End', name], end, () => ({
    title: sentence`End sharing with “${user}”?`,
    text: sentence`Sharing ends in both directions. To get back what “${user}” shares with you, ask them to share again.`,
    action: 'End sharing',
  }));
  return entryOf(user, [], access, button);
}

function textOf(text: string): HTMLElement {
  return element('span', { className: 'entry-text' }, text);
}

/** The command that creates a token for the same user, which can also share. */
function commandOf({ user, store: name, scopes }: Token): string {
  const wanted = [...scopes, 'shares:write'].join();
  return `npx plant-store token create ${quote(user)} --store ${quote(name)} --scope ${wanted}`;
}

function quote(text: string): string {
  return /^[\w.@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
