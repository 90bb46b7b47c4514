/**
 * The dialog that asks before something that the user cannot undo.
 */
import { byId, setText, type Text } from './dom.ts';

export interface Question {
  title: Text;
  text: Text;
  /** What the button that agrees is called. */
  action: string;
  /** Whether it destroys nothing. */
  isSafe?: boolean;
}

const dialog = byId('confirm', HTMLDialogElement);
/** Answers the last question. */
let answer = () => {};
// The event comes a frame after the dialog has closed. The dialog can be open for the next question by then.
dialog.addEventListener('close', () => {
  if (!dialog.open) answer();
});

/** Resolves to false if the user closes the dialog in another way than with that button. */
export async function confirm({ title, text, action, isSafe }: Question): Promise<boolean> {
  answer(); // the event of the last question can be pending
  const { promise, resolve } = Promise.withResolvers<boolean>();
  answer = () => resolve(dialog.returnValue === 'yes');
  setText('confirm-title', title);
  setText('confirm-text', text);
  setText('confirm-yes', action);
  byId('confirm-yes', HTMLElement).className = isSafe === true ? 'primary' : 'danger';
  dialog.returnValue = '';
  dialog.showModal();
  return promise;
}
