/**
 * The banner below the bar: why the page cannot use the service, and what the user can do about it.
 */
import { onPress, setText, show } from './dom.ts';
import { announce } from './toast.ts';

interface Notice {
  title: string;
  text: string;
  action: string;
  onAction: () => void;
}

let current: Notice | undefined;
onPress('connection-action', act);

/** Does what the button of the banner does. */
export function act(): void {
  current?.onAction();
}

/** Replaces the current notice. Screen readers announce it if its title is another one. */
export function showBanner(notice: Notice): void {
  const isOther = current?.title !== notice.title;
  current = notice;
  setText('connection-title', notice.title);
  setText('connection-text', notice.text);
  setText('connection-action', notice.action);
  show('connection');
  repeatInDialogs(`${notice.title} ${notice.text}`);
  if (isOther) announce(`${notice.title} ${notice.text}`);
}

export function hideBanner(): void {
  current = undefined;
  show('connection', false);
  repeatInDialogs('');
}

/** Dialogs cover the banner. */
function repeatInDialogs(text: string): void {
  for (const copy of document.querySelectorAll('[data-connection]')) copy.textContent = text;
}
