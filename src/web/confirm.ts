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

/** Resolves to false if the user closes the dialog in another way than with that button, or if `signal` aborts. */
export async function confirm(question: Question, signal: AbortSignal): Promise<boolean> {
  const dialog = byId('confirm', HTMLDialogElement);
  setText('confirm-title', question.title);
  setText('confirm-text', question.text);
  setText('confirm-yes', question.action);
  dialog.returnValue = '';
  dialog.showModal();
  const { promise, resolve } = Promise.withResolvers<void>();
  dialog.addEventListener('close', () => resolve(), { once: true });
  const cancel = () => dialog.close('');
  signal.addEventListener('abort', cancel);
  await promise;
  signal.removeEventListener('abort', cancel);
  return dialog.returnValue === 'yes' && !signal.aborted;
}
