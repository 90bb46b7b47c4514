/**
 * The dialog that asks before something that the user cannot undo.
 */
import { byId, setText, type Text } from './dom.ts';

export interface Question {
  title: Text;
  text: Text;
  /** What the button that agrees is called. */
  action: string;
}

/** Answers the last question. */
let answer = () => {};

/** The event comes a frame after the dialog has closed. The dialog can be open for the next question by then. */
function onClose(this: HTMLDialogElement): void {
  if (!this.open) answer();
}

/** Resolves to false if the user closes the dialog in another way than with that button. */
export async function confirm({ title, text, action }: Question): Promise<boolean> {
  const dialog = byId('confirm', HTMLDialogElement);
  answer(); // the event of the last question can be pending
  const { promise, resolve } = Promise.withResolvers<boolean>();
  answer = () => resolve(dialog.returnValue === 'yes');
  dialog.addEventListener('close', onClose); // only the first time adds it
  setText('confirm-title', title);
  setText('confirm-text', text);
  setText('confirm-yes', action);
  dialog.returnValue = '';
  dialog.showModal();
  return promise;
}
