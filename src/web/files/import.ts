/**
 * The dialog that adds the plants of a CSV or JSON file: choose, preview, import. An import continues while the dialog
 * is closed, and ends with the page.
 */
import { PlantStoreError, type PlantStore, type Token } from '../../client/client.ts';
import { importPlants, memoryJournal, type ImportJournal } from '../../client/import.ts';
import { decodeText, type ImportRow } from '../../client/rows.ts';
import type { Connection } from '../session/connection.ts';
import { byId, element, onPress, setText, show } from '../shared/dom.ts';
import { formatCount } from '../shared/format.ts';
import { ImportPreview, rowCount } from './import-preview.ts';
import { ImportProgress } from './import-progress.ts';
import { toast, type Toast } from '../shared/toast.ts';

const pastedName = 'pasted rows';
/** The requests in flight. Browsers limit them to 6 for each service with HTTP/1.1. */
const concurrency = 16;

type Step = 'choose' | 'preview' | 'run';

export class ImportDialog {
  readonly #connection: Connection;
  readonly #onAdded: () => void;
  readonly #dialog = byId('import', HTMLDialogElement);
  readonly #pasted = byId('import-text', HTMLTextAreaElement);
  readonly #preview = new ImportPreview();
  #canImport = false;
  /** What is imported. */
  #name = '';
  #text = '';
  /** What was done for each row, so that an import that was stopped can continue. */
  #journal = memoryJournal();
  #isUnfinished = false;
  #progress: ImportProgress | undefined;
  #stop: AbortController | undefined;
  #message: Toast | undefined;
  #waiting = '';

  /** `onAdded` is called when an import that has added plants ends. */
  constructor(connection: Connection, onAdded: () => void) {
    this.#connection = connection;
    this.#onAdded = onAdded;
    for (const id of ['import-open', 'empty-import']) onPress(id, () => this.open());
    for (const id of ['import-cancel', 'import-hide']) onPress(id, () => this.#dialog.close());
    for (const id of ['import-back', 'import-again']) onPress(id, () => this.#choose());
    onPress('import-read', () => this.#read(pastedName, () => this.#pasted.value));
    onPress('import-stop', () => this.#stop?.abort());
    onPress('import-continue', () => this.#run());
    onPress('import-download', () => this.#progress?.saveRefused(this.#name));
    byId('import-preview', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#run();
    });
    const input = byId('import-file', HTMLInputElement);
    input.addEventListener('change', () => {
      void this.#readFile(input.files?.[0]);
      input.value = ''; // the same file can be chosen again after it was fixed
    });
    this.#dialog.addEventListener('close', () => this.#showMessage());
    addEventListener('beforeunload', (event) => {
      if (this.#stop !== undefined) event.preventDefault(); // the browser asks
    });
    acceptDrops({
      canDrop: () => this.#canImport && this.#stop === undefined,
      onDrop: (file) => {
        this.open();
        void this.#readFile(file);
      },
    });
  }

  /** Sets the user of the page. An import for the one before ends. */
  use({ scopes }: Token): void {
    this.stop();
    this.#forget();
    this.#dialog.close();
    this.#message?.close();
    this.#canImport = scopes.includes('plants:write') && scopes.includes('plants:read');
    for (const id of ['import-open', 'empty-import']) show(id, this.#canImport);
  }

  stop(): void {
    this.#stop?.abort();
    this.#stop = undefined;
  }

  open(): void {
    if (this.#stop === undefined && !this.#isUnfinished) this.#choose();
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#message?.close();
  }

  #choose(): void {
    this.#pasted.value = '';
    this.#showStep('choose');
    byId('import-file', HTMLInputElement).focus();
  }

  async #readFile(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    const bytes = new Uint8Array(await file.arrayBuffer());
    this.#read(file.name, () => decodeText(bytes));
  }

  /** Shows what a file contains, or why it cannot be imported. */
  #read(name: string, textOf: () => string): void {
    if (this.#stop !== undefined) return; // an import has started while the file was read
    try {
      const text = textOf();
      this.#preview.show(name, text);
      [this.#name, this.#text] = [name, text];
      this.#forget();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.#showStep('choose');
      this.#fail(error.message);
      return;
    }
    this.#showStep('preview');
    this.#preview.focus();
  }

  #forget(): void {
    this.#journal = memoryJournal();
    this.#isUnfinished = false;
  }

  async #run(): Promise<void> {
    if (this.#stop !== undefined) return;
    const { signal } = (this.#stop = new AbortController());
    const journal = this.#journal;
    const { rows, place } = this.#preview;
    const progress = (this.#progress = new ImportProgress(rows, this.#text, place, () => {
      setText('import-waiting', this.#waiting);
      this.#message?.update(this.#messageText());
    }));
    this.#showRun(`Importing ${this.#name} …`);
    try {
      await this.#connection.run((store) => this.#add(store, rows, journal, signal), { signal });
      this.#end(progress.summary, { isComplete: true });
    } catch (error) {
      if (!signal.aborted) this.#fail(reasonOf(error));
      if (this.#journal !== journal) return; // another user has opened a store
      const left = rowCount(progress.total - progress.done);
      this.#end(`Not complete. ${progress.summary} ${left} left.`, { isComplete: false });
    }
    if (progress.added > 0) this.#onAdded();
  }

  async #add(
    store: PlantStore,
    rows: readonly ImportRow[],
    journal: ImportJournal,
    signal: AbortSignal,
  ): Promise<void> {
    const onWait = ({ detail }: PlantStoreError) => {
      this.#waiting = `Waiting for the service. ${detail}`;
      this.#progress?.draw();
    };
    const outcomes = importPlants({ store, rows, journal, concurrency, signal, onWait });
    for await (const outcome of outcomes) {
      this.#waiting = '';
      this.#progress?.add(outcome);
    }
  }

  #end(text: string, { isComplete }: { isComplete: boolean }): void {
    this.#stop = undefined;
    this.#isUnfinished = !isComplete;
    this.#waiting = '';
    this.#progress?.draw();
    this.#message?.close();
    setText('import-running', this.#name);
    setText('import-done', text);
    show('import-stop', false);
    show('import-continue', !isComplete);
    show('import-download', this.#progress?.hasRefused);
    show('import-again');
    if (this.#dialog.open) {
      byId(isComplete ? 'import-hide' : 'import-continue', HTMLButtonElement).focus();
    } else toast(text);
  }

  /** Shows the progress while the dialog is closed. */
  #showMessage(): void {
    // The event that calls this comes a frame after the dialog has closed. It can be open again.
    if (this.#stop === undefined || this.#dialog.open) return;
    this.#message?.close();
    const button = element('button', { type: 'button' }, 'Show');
    button.addEventListener('click', () => this.open());
    this.#message = toast(this.#messageText(), button);
  }

  #messageText(): string {
    const { done, total } = this.#progress ?? { done: 0, total: 0 };
    return `Importing ${this.#name}: ${formatCount(done)} of ${rowCount(total)}`;
  }

  #showRun(title: string): void {
    this.#showStep('run');
    setText('import-running', title);
    setText('import-done', '');
    show('import-stop');
    for (const id of ['import-continue', 'import-download', 'import-again']) show(id, false);
    byId('import-stop', HTMLButtonElement).focus();
  }

  #showStep(step: Step): void {
    for (const each of ['choose', 'preview', 'run']) show(`import-${each}`, each === step);
    show('import-failure', false);
  }

  #fail(text: string): void {
    setText('import-failure', text);
    show('import-failure');
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof PlantStoreError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}

/** Makes the whole page a place to drop a file. */
function acceptDrops({
  canDrop,
  onDrop,
}: {
  canDrop: () => boolean;
  onDrop: (file: File) => void;
}): void {
  const hasFile = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true;
  addEventListener('dragover', (event) => {
    if (!hasFile(event)) return;
    event.preventDefault(); // otherwise the browser leaves the page for the file
    if (event.dataTransfer) event.dataTransfer.dropEffect = canDrop() ? 'copy' : 'none';
    show('drop-hint', canDrop());
  });
  addEventListener('dragleave', ({ relatedTarget }) => {
    if (relatedTarget === null) show('drop-hint', false);
  });
  addEventListener('drop', (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    show('drop-hint', false);
    const file = event.dataTransfer?.files[0];
    if (file !== undefined && canDrop()) onDrop(file);
  });
}
