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

/** What a notice can be about. The banner shows the first one: another token cannot be checked without the service. */
const notices: { service: Notice | undefined; token: Notice | undefined } = {
  service: undefined,
  token: undefined,
};
let current: Notice | undefined;
onPress('connection-action', act);

/** Does what the button of the banner does. */
export function act(): void {
  current?.onAction();
}

/** Sets or removes a notice. Screen readers announce what the banner shows if its title is another one. */
export function setNotice(about: keyof typeof notices, notice: Notice | undefined): void {
  notices[about] = notice;
  const before = current;
  current = notices.service ?? notices.token;
  show('connection', current !== undefined);
  const { title = '', text = '', action = '' } = current ?? {};
  setText('connection-title', title);
  setText('connection-text', text);
  setText('connection-action', action);
  // Dialogs cover the banner.
  const whole = `${title} ${text}`.trim();
  for (const copy of document.querySelectorAll('[data-connection]')) copy.textContent = whole;
  if (current !== undefined && before?.title !== title) announce(whole);
}
