/**
 * The dialog that adds the plants of a CSV or JSON file: choose, preview, import. An import continues while the dialog
 * is closed, and ends with the page.
 */
import { PlantStoreError, type PlantStore } from '../../client/client.ts';
import { InvalidFile } from '../../client/read-rows.ts';
import { importPlants } from '../../client/send-rows.ts';
import { byId, onPress, sentence, setText, show } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { showPreview, sourceOf, type ImportSource } from './import-preview.ts';
import { ImportProgress } from './import-progress.ts';

/** The requests in flight. Browsers limit them to 6 for each service with HTTP/1.1. */
const concurrency = 16;

export class ImportDialog {
  readonly #store: PlantStore;
  readonly #onAdded: () => void;
  readonly #dialog = byId('import', HTMLDialogElement);
  #canImport = false;
  #source: ImportSource | undefined;
  /** Of the import that runs, or of the last one of this file. */
  #progress: ImportProgress | undefined;
  #stop: AbortController | undefined;

  /** `onAdded` is called when an import that has added plants ends. */
  constructor(store: PlantStore, onAdded: () => void) {
    this.#store = store;
    this.#onAdded = onAdded;
    for (const id of ['import-open', 'empty-import']) onPress(id, () => this.open());
    for (const id of ['import-cancel', 'import-hide']) onPress(id, () => this.#dialog.close());
    for (const id of ['import-back', 'import-again']) onPress(id, () => this.#choose());
    onPress('import-stop', () => this.#stop?.abort());
    onPress('import-continue', () => this.#run());
    onPress('import-download', () => this.#progress?.saveRefused());
    byId('import-preview', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#run();
    });
    const input = byId('import-file', HTMLInputElement);
    input.addEventListener('change', () => {
      void this.#read([...(input.files ?? [])]);
      input.value = ''; // the same file can be chosen again after it was fixed
    });
    this.#dialog.addEventListener('close', () => {
      if (this.#stop !== undefined)
        toast('The import continues. To see its progress, choose Import.');
    });
    addEventListener('beforeunload', (event) => {
      if (this.#stop !== undefined) event.preventDefault(); // the browser asks
    });
    this.#acceptDrops();
  }

  get #isUnfinished(): boolean {
    return this.#progress !== undefined && this.#progress.left > 0;
  }

  /** Sets whether the token of the page can import. */
  allow(canImport: boolean): void {
    this.#canImport = canImport;
    for (const id of ['import-open', 'empty-import']) show(id, canImport);
  }

  /** Ends the import, because the user leaves. */
  stop(): void {
    this.#stop?.abort();
    this.#stop = undefined;
  }

  open(): void {
    if (this.#stop === undefined && !this.#isUnfinished) this.#choose();
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  /** Makes the whole page a place to drop a file. */
  #acceptDrops(): void {
    const canDrop = () => this.#canImport && this.#stop === undefined;
    const hasFile = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true;
    addEventListener('dragover', (event) => {
      if (!hasFile(event)) return;
      event.preventDefault(); // otherwise the browser leaves the page for the file
      if (event.dataTransfer) event.dataTransfer.dropEffect = canDrop() ? 'copy' : 'none';
    });
    addEventListener('drop', (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      if (!canDrop()) return;
      this.open();
      void this.#read([...(event.dataTransfer?.files ?? [])]);
    });
  }

  #choose(): void {
    this.#showStep('choose');
    byId('import-file', HTMLInputElement).focus();
  }

  /** Shows what a file contains, or why it cannot be imported. */
  async #read(files: readonly File[]): Promise<void> {
    const source = await sourceOf(files).catch((error: unknown) => {
      if (error instanceof InvalidFile) return error;
      throw error;
    });
    if (this.#stop !== undefined) return; // an import has started while the file was read
    if (source instanceof InvalidFile) {
      this.#showStep('choose');
      setText('import-failure', source.message);
      return;
    }
    this.#source = source;
    this.#progress = undefined;
    this.#showStep('preview');
    showPreview(source);
  }

  async #run(): Promise<void> {
    const source = this.#source;
    if (source === undefined || this.#stop !== undefined) return;
    const { signal } = (this.#stop = new AbortController());
    const progress = new ImportProgress(source);
    this.#progress = progress;
    this.#showStep('run');
    this.#showRunning(progress, true);
    const [store, { rows, key }] = [this.#store, source];
    const keyOf = (_: unknown, row: number) => `${key} ${row}`;
    let failure = '';
    try {
      const outcomes = importPlants({ store, rows, keyOf, concurrency, signal });
      for await (const outcome of outcomes) progress.add(outcome);
    } catch (error) {
      if (!signal.aborted) {
        failure = error instanceof PlantStoreError ? error.detail : String(error);
      }
    }
    this.#stop = undefined;
    this.#end(progress, failure);
  }

  #end(progress: ImportProgress, failure: string): void {
    progress.end();
    this.#showRunning(progress, false);
    const text = this.#isUnfinished
      ? `Not complete. ${progress.summary} ${countOf(progress.left, 'row')} left.`
      : progress.summary;
    setText('import-failure', failure);
    setText('import-done', text);
    if (!this.#dialog.open) toast(text);
    if (progress.counts.added > 0) this.#onAdded();
  }

  /** Shows the controls of an import that runs, or of one that has ended. */
  #showRunning({ source, counts }: ImportProgress, isRunning: boolean): void {
    setText('import-running', isRunning ? sentence`Importing ${source.name} …` : source.name);
    setText('import-done', '');
    show('import-stop', isRunning);
    show('import-continue', !isRunning && this.#isUnfinished);
    show('import-download', !isRunning && counts.refused > 0);
    show('import-again', !isRunning);
    const next = this.#isUnfinished ? 'import-continue' : 'import-hide';
    if (this.#dialog.open) byId(isRunning ? 'import-stop' : next, HTMLButtonElement).focus();
  }

  #showStep(step: 'choose' | 'preview' | 'run'): void {
    for (const each of ['choose', 'preview', 'run']) show(`import-${each}`, each === step);
    setText('import-failure', '');
  }
}
