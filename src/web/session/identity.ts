/**
 * Shows who uses the page, and what they can do, in the bar and in their menu.
 */
import type { Token } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { setFacts, setText, show } from '../shared/dom.ts';
import { formatDay, formatTime, rightsText } from '../shared/format.ts';
import { idleDays } from './device.ts';

interface TokenOfPage {
  /** Whether the service has created the token, and not an identity provider. */
  isOfService: boolean;
  /** Whether this browser keeps it. */
  isKept: boolean;
}

export function showIdentity(granted: Token, { isOfService, isKept }: TokenOfPage): void {
  const { user, store: name, role, scopes, expiresAt, lastBackup } = granted;
  const { renewableUntil = expiresAt } = granted;
  document.title = printable(`${name} · Plant Store`);
  setText('store-name', name);
  setText('who-user', user);
  show('store-name');
  show('who');
  show('stay', !isKept);
  // The service refuses to create tokens with those of an identity provider.
  const rights = new Set<string>(isOfService ? [...scopes, 'tokens:create'] : scopes);
  if (role === 'member') rights.delete('users:write'); // it is for managers
  document.body.dataset['rights'] = [...rights].join(' '); // controls.css hides what needs others
  setFacts('identity-facts', {
    User: user,
    Store: name,
    Role:
      role === 'manager'
        ? 'Manager: all plants of the store'
        : 'Member: your own plants, and those shared with you',
    Rights: rightsText(scopes),
    'Valid until': expiresAt === undefined ? 'It does not expire' : formatTime(expiresAt),
    ...(lastBackup && { 'Last backup': `${formatDay(lastBackup)}; restored and compared` }),
  });
  setText(
    'identity-kept',
    isKept && renewableUntil !== undefined
      ? `You stay signed in on this device for ${idleDays} days after each visit, until ${formatTime(renewableUntil)} at the latest. Signing out ends this.`
      : 'This tab keeps your token until you close it or sign out.',
  );
}
