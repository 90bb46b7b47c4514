/**
 * The dialog that adds the plants of a CSV or JSON file: choose, preview, import. An import continues while the dialog
 * is closed. After the page was closed, the user can continue it.
 */
import { PlantStoreError, type PlantStore, type Token } from '../client/client.ts';
import { importPlants } from '../client/import.ts';
import { decodeText, type ImportRow } from '../client/rows.ts';
import type { Connection } from './connection.ts';
import { byId, element, onPress, setText, show } from './dom.ts';
import { formatCount } from './format.ts';
import { ownerOf, PageJournal, type Source } from './import-journal.ts';
import { ImportPreview, rowCount } from './import-preview.ts';
import { ImportProgress } from './import-progress.ts';
import { toast, type Toast } from './toast.ts';

const pastedName = 'pasted rows';
/** The requests in flight. Browsers limit them to 6 for each service with HTTP/1.1. */
const concurrency = 16;

type Step = 'choose' | 'preview' | 'run';

export class ImportDialog {
  readonly #connection: Connection;
  readonly #onAdded: () => void;
  readonly #dialog = byId('import', HTMLDialogElement);
  readonly #text = byId('import-text', HTMLTextAreaElement);
  readonly #skip = byId('import-skip', HTMLInputElement);
  readonly #preview = new ImportPreview();
  /** The user of a store that the rows are for. Undefined if this user cannot import. */
  #owner: string | undefined;
  /** The number of files that were loaded. Only the last one counts. */
  #loads = 0;
  #source: Source | undefined;
  #journal: PageJournal | undefined;
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
    onPress('import-read', () => this.#read(pastedName, () => this.#text.value));
    onPress('import-stop', () => this.#stop?.abort());
    onPress('import-continue', () => this.#run());
    onPress('import-download', () => this.#progress?.saveRefused(this.#source?.name ?? ''));
    byId('import-preview', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#begin();
    });
    const input = byId('import-file', HTMLInputElement);
    input.addEventListener('change', () => {
      void this.#readFile(input.files?.[0]);
      input.value = ''; // the same file can be chosen again after it was fixed
    });
    this.#dialog.addEventListener('close', () => this.#showMessage());
    acceptDrops({
      canDrop: () => this.#owner !== undefined && this.#stop === undefined,
      onDrop: (file) => {
        this.open();
        void this.#readFile(file);
      },
    });
  }

  /** Sets the user of the page. Offers to continue an import that was interrupted. */
  async use(token: Token): Promise<void> {
    this.#stop?.abort();
    this.#stop = undefined;
    this.#journal = undefined;
    this.#dialog.close();
    this.#message?.close();
    const { scopes } = token;
    const canImport = scopes.includes('plants:write') && scopes.includes('plants:read');
    this.#owner = canImport ? ownerOf(token) : undefined;
    for (const id of ['import-open', 'empty-import']) show(id, canImport);
    if (this.#owner === undefined) return;
    // Without storage, nothing is unfinished.
    const owner = this.#owner;
    const source = await PageJournal.findUnfinished(owner).catch(() => undefined);
    if (source !== undefined && owner === this.#owner) this.#offer(source, owner);
  }

  open(): void {
    if (this.#stop === undefined) this.#choose();
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#message?.close();
  }

  #choose(): void {
    this.#text.value = '';
    this.#showStep('choose');
    byId('import-file', HTMLInputElement).focus();
  }

  async #readFile(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    const bytes = new Uint8Array(await file.arrayBuffer());
    await this.#read(file.name, () => decodeText(bytes));
  }

  /** Shows what a file contains, or why it cannot be imported. */
  async #read(name: string, textOf: () => string): Promise<void> {
    if (this.#stop !== undefined) return; // an import has started while the file was read
    try {
      const text = textOf();
      if (!(await this.#load({ name, text, mapping: undefined }))) return;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.#showStep('choose');
      this.#fail(error.message);
      return;
    }
    const { size } = this.#journal?.entries ?? { size: 0 };
    show('import-skip-row', size > 0);
    setText('import-skip-text', `Skip the rows that an earlier import of “${name}” has added`);
    this.#skip.checked = true;
    this.#showStep('preview');
    this.#preview.focus();
  }

  /** Returns false if another file was loaded meanwhile, or for another user. */
  async #load(source: Source): Promise<boolean> {
    const load = ++this.#loads;
    const owner = this.#owner;
    if (owner === undefined) return false;
    this.#preview.show(source.name, source.text, source.mapping);
    const journal = await PageJournal.open(owner, source.name);
    if (load !== this.#loads || owner !== this.#owner) return false;
    this.#source = source;
    this.#journal = journal;
    return true;
  }

  async #begin(): Promise<void> {
    if (this.#source === undefined) return;
    this.#source = { ...this.#source, mapping: this.#preview.mapping };
    await this.#run({ afresh: !this.#skip.checked });
  }

  /** `afresh`: adds all rows, also those that an earlier import has added. */
  async #run({ afresh = false } = {}): Promise<void> {
    const [source, journal] = [this.#source, this.#journal];
    if (source === undefined || journal === undefined || this.#stop !== undefined) return;
    const { signal } = (this.#stop = new AbortController());
    const { rows } = this.#preview;
    const progress = (this.#progress = new ImportProgress(
      rows,
      source.text,
      this.#preview.place,
      () => {
        setText('import-waiting', this.#waiting);
        this.#message?.update(this.#messageText());
      },
    ));
    this.#showRun(`Importing ${source.name} …`);
    try {
      if (afresh) await journal.clear();
      await journal.setSource(source);
      await this.#connection.run((store) => this.#add(store, rows, journal, signal), { signal });
      await journal.setSource(undefined);
      this.#end(progress.summary, { isComplete: true });
    } catch (error) {
      if (!signal.aborted) this.#fail(reasonOf(error));
      if (this.#journal !== journal) return; // another user has opened a store
      this.#end(`Not complete. ${progress.summary}`, { isComplete: false });
    }
    if (progress.added > 0) this.#onAdded();
  }

  async #add(
    store: PlantStore,
    rows: readonly ImportRow[],
    journal: PageJournal,
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
    this.#waiting = '';
    this.#progress?.draw();
    this.#message?.close();
    setText('import-running', this.#source?.name ?? '');
    setText('import-done', text);
    show('import-stop', false);
    show('import-continue', !isComplete);
    show('import-download', this.#progress?.hasRefused);
    show('import-again', isComplete);
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
    return `Importing ${this.#source?.name}: ${formatCount(done)} of ${rowCount(total)}`;
  }

  #offer(source: Source, owner: string): void {
    const resume = element('button', { type: 'button' }, 'Continue');
    const discard = element('button', { type: 'button' }, 'Discard');
    const message = toast(`The import of ${source.name} is not complete.`, resume, discard);
    this.#message = message;
    resume.addEventListener('click', () => void continueImport());
    discard.addEventListener('click', () => void discardImport());
    const discardImport = async () => {
      message.close();
      await (await PageJournal.open(owner, source.name)).setSource(undefined);
    };
    const continueImport = async () => {
      message.close();
      if (this.#stop !== undefined || !(await this.#load(source))) return;
      this.#dialog.showModal();
      await this.#run();
    };
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
