/**
 * The dialog that asks before something that the user cannot undo.
 */
import { byId, setText } from './dom.ts';

export interface Question {
  title: string;
  text: string;
  /** What the button that agrees is called. */
  action: string;
}

/** Answers the last question. */
let answer = () => {};

/** The event comes a frame after the dialog has closed. The dialog can be open for the next question by then. */
function onClose(this: HTMLDialogElement): void {
  if (!this.open) answer();
}

/** Resolves to false if the user closes the dialog in another way than with that button, or if `signal` aborts. */
export async function confirm(question: Question, signal?: AbortSignal): Promise<boolean> {
  const dialog = byId('confirm', HTMLDialogElement);
  answer(); // the event of the last question can be pending
  const { promise, resolve } = Promise.withResolvers<boolean>();
  answer = () => resolve(dialog.returnValue === 'yes');
  dialog.addEventListener('close', onClose); // only the first time adds it
  setText('confirm-title', question.title);
  setText('confirm-text', question.text);
  setText('confirm-yes', question.action);
  dialog.returnValue = '';
  dialog.showModal();
  const cancel = () => dialog.close('');
  signal?.addEventListener('abort', cancel);
  const isYes = await promise;
  signal?.removeEventListener('abort', cancel);
  return isYes && signal?.aborted !== true;
}
