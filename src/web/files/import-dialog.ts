/**
 * The dialog that adds the plants of a CSV or JSON file: choose, preview, import. An import continues while the dialog
 * is closed, and ends with the page.
 */
import { PlantStoreError } from '../../client/client.ts';
import { InvalidFile } from '../../client/read-rows.ts';
import { importPlants } from '../../client/send-rows.ts';
import { leaving } from '../session/connection.ts';
import { can, store } from '../session/session.ts';
import { byId, onPress, sentence, setText, show } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { reload } from '../table/plants.ts';
import { showPreview, sourceOf, type ImportSource } from './import-preview.ts';
import { ImportProgress } from './import-progress.ts';

/** The requests in flight. Browsers limit them to 6 for each service with HTTP/1.1. */
const concurrency = 16;

const dialog = byId('import', HTMLDialogElement);
const fileInput = byId('import-file', HTMLInputElement);
let source: ImportSource | undefined;
/** Of the import that runs, or of the last one of this file. */
let progress: ImportProgress | undefined;
/** Stops the import that runs. */
let running: AbortController | undefined;
leaving.signal.addEventListener('abort', () => {
  running?.abort();
  running = undefined;
});

for (const id of ['import-back', 'import-again']) onPress(id, choose);
onPress('import-stop', () => running?.abort());
onPress('import-continue', run);
onPress('import-download', () => progress?.saveRefused());
byId('import-preview', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  void run();
});
fileInput.addEventListener('change', () => {
  void read([...(fileInput.files ?? [])]);
  fileInput.value = ''; // the same file can be chosen again after it was fixed
});
dialog.addEventListener('close', () => {
  if (running !== undefined) toast('The import continues. To see its progress, choose Import.');
});
addEventListener('beforeunload', (event) => {
  if (running !== undefined) event.preventDefault(); // the browser asks
});
// The whole page is a place to drop a file.
addEventListener('dragover', (event) => {
  if (!hasFile(event)) return;
  event.preventDefault(); // otherwise the browser leaves the page for the file
  if (event.dataTransfer) event.dataTransfer.dropEffect = canDrop() ? 'copy' : 'none';
});
addEventListener('drop', (event) => {
  if (!hasFile(event)) return;
  event.preventDefault();
  if (!canDrop()) return;
  openImport();
  void read([...(event.dataTransfer?.files ?? [])]);
});

function hasFile({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes('Files') === true;
}

function canDrop(): boolean {
  return can('plants:read') && can('plants:write') && running === undefined;
}

function isUnfinished(): boolean {
  return progress !== undefined && progress.left > 0;
}

/** Opens the dialog, at an import that is not complete if there is one. */
export function openImport(): void {
  if (running === undefined && !isUnfinished()) choose();
  if (!dialog.open) dialog.showModal();
}

function choose(): void {
  showStep('choose');
  fileInput.focus();
}

/** Shows what a file contains, or why it cannot be imported. */
async function read(files: readonly File[]): Promise<void> {
  const found = await sourceOf(files).catch((error: unknown) => {
    if (error instanceof InvalidFile) return error;
    throw error;
  });
  if (running !== undefined) return; // an import has started while the file was read
  if (found instanceof InvalidFile) {
    showStep('choose');
    setText('import-failure', found.message);
    return;
  }
  source = found;
  progress = undefined;
  showStep('preview');
  showPreview(found);
}

async function run(): Promise<void> {
  if (source === undefined || running !== undefined) return;
  const { rows, key } = source;
  const { signal } = (running = new AbortController());
  const current = (progress = new ImportProgress(source));
  showStep('run');
  showRunning(current);
  const keyOf = (_: unknown, row: number) => `${key} ${row}`;
  let failure = '';
  try {
    const outcomes = importPlants({ store, rows, keyOf, concurrency, signal });
    for await (const outcome of outcomes) current.add(outcome);
  } catch (error) {
    if (!signal.aborted) failure = error instanceof PlantStoreError ? error.detail : String(error);
  }
  running = undefined;
  current.end();
  showRunning(current);
  const { left, summary } = current;
  const text = left > 0 ? `Not complete. ${summary} ${countOf(left, 'row')} left.` : summary;
  setText('import-failure', failure);
  setText('import-done', text);
  if (!dialog.open) toast(text);
  if (current.counts.added > 0) reload();
}

/** Shows the controls of an import that runs, or of one that has ended. */
function showRunning({ source: { name }, counts }: ImportProgress): void {
  const isRunning = running !== undefined;
  setText('import-running', isRunning ? sentence`Importing ${name} …` : name);
  setText('import-done', '');
  show('import-stop', isRunning);
  show('import-continue', !isRunning && isUnfinished());
  show('import-download', !isRunning && counts.refused > 0);
  show('import-again', !isRunning);
  const next = isUnfinished() ? 'import-continue' : 'import-hide';
  if (dialog.open) byId(isRunning ? 'import-stop' : next, HTMLButtonElement).focus();
}

function showStep(step: 'choose' | 'preview' | 'run'): void {
  for (const each of ['choose', 'preview', 'run']) show(`import-${each}`, each === step);
  setText('import-failure', '');
}
