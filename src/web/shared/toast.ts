/**
 * Short messages at the bottom of the page, and the live region that announces them to screen readers.
 */
import { byId, element, focusTable, setText, type Text } from './dom.ts';

const shownMs = 6_000;
/** Long enough to find out that Tab leads to the button, and to get there. */
const offeredMs = 30_000;
const maxOffers = 3;

const toasts = byId('toasts', HTMLElement);
new MutationObserver(raise).observe(document.body, { attributeFilter: ['open'], subtree: true });

/** Shows the messages above everything else, and in the open dialog: outside of it, nothing can be pressed. */
function raise(): void {
  const place = [...document.querySelectorAll('dialog:modal')].at(-1) ?? document.body;
  if (toasts.parentElement !== place) place.append(toasts);
  if (!toasts.matches(':popover-open')) toasts.showPopover();
}

/** Announces a text to screen readers only. What others do has a region of its own, so that it replaces no answer. */
export function announce(text: Text, region: 'live' | 'live-others' = 'live'): void {
  setText(region, '');
  // A region that gets the same text again is not read again, unless it was empty for a moment.
  setTimeout(() => setText(region, text), 50);
}

/** Shows a message for a few seconds, or one with buttons until the function that this returns is called. */
export function toast(text: Text, ...buttons: HTMLButtonElement[]): () => void {
  const message = element('div', { className: 'toast' }, element('p', {}, text), ...buttons);
  toasts.append(message);
  raise();
  announce(text);
  const close = () => {
    const hadFocus = message.contains(document.activeElement);
    message.remove();
    if (hadFocus) focusTable();
  };
  if (buttons.length === 0) setTimeout(close, shownMs);
  return close;
}

/** Shows what was done for a while, or longer while the user is there, to undo it. Returns what closes it sooner. */
export function offerUndo(text: Text, undo: () => Promise<void>): () => void {
  const button = element('button', { type: 'button', className: 'offer' }, 'Undo');
  const close = toast(text, button);
  const press = () => {
    close();
    void undo();
  };
  button.addEventListener('click', press, { once: true }); // a double click has two
  const closeLater = () => {
    setTimeout(
      () => (button.matches(':focus, .toast:hover *') ? closeLater() : close()),
      offeredMs,
    );
  };
  closeLater();
  const offers = document.querySelectorAll('.offer');
  if (offers.length > maxOffers) offers[0]?.closest('.toast')?.remove();
  return close;
}
