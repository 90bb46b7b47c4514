/**
 * The dialog that adds the plants of a CSV or JSON file: choose, preview, import. An import continues while the dialog
 * is closed, and ends with the page.
 */
import { PlantStoreError } from '../../client/client.ts';
import { InvalidFile } from '../../client/read-rows.ts';
import {
  contentOf,
  importPlants,
  noCounts,
  placeOf,
  summaryOf,
  undoImport,
  type ImportOutcome,
} from '../../client/send-rows.ts';
import { leaving } from '../session/connection.ts';
import { can, store } from '../session/session.ts';
import { byId, element, inNextFrame, onPress, sentence, setText, show } from '../shared/dom.ts';
import { countOf, formatCount } from '../shared/format.ts';
import { whileBusy } from '../shared/form.ts';
import { importKey, remember } from '../shared/remember.ts';
import { offerUndo, toast } from '../shared/toast.ts';
import { reload } from '../table/plants.ts';
import { save } from './export.ts';
import { openFile, readKnown, refusedRows, type ImportFile } from './import-file.ts';
import { showPreview, showRows } from './import-preview.ts';

/** The requests in flight. Browsers limit them to 6 for each service with HTTP/1.1. */
const concurrency = 16;
const maxShownRefusals = 200;

const dialog = byId('import', HTMLDialogElement);
const fileInput = byId('import-file', HTMLInputElement);
let file: ImportFile | undefined;
/** The number of rows of the file that have no outcome yet; undefined before its import begins. */
let left: number | undefined;
let counts = { ...noCounts };
/** What the last import has done, and Undo can undo. */
let undoable: ImportOutcome[] = [];
/** Whether a message has offered that, and what closes it. */
let isOffered = false;
let closeOffer = (): void => {};
let refusals: ImportOutcome[] = [];
/** The buttons that undo it, each with the one that gets its focus. */
const undoButtons = { 'import-undo': 'import-hide', 'import-undo-last': 'import-cancel' };
/** Stops the import that runs. */
let running: AbortController | undefined;
leaving.signal.addEventListener('abort', () => {
  running?.abort();
  running = undefined;
});

for (const id of ['import-back', 'import-again']) onPress(id, choose);
onPress('import-stop', () => running?.abort());
onPress('import-continue', run);
onPress('import-download', saveRefused);
for (const id of Object.keys(undoButtons))
  onPress(id, () => whileBusy(byId(id, HTMLButtonElement), () => undo(undoable)));
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
  else if (!left && undoable.length > 0 && !isOffered)
    tell(`Imported ${countOf(undoable.length, 'plant')}.`);
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

/** Opens the dialog, at an import that is not complete if there is one. */
export function openImport(): void {
  closeOffer(); // the dialog offers it too
  if (running === undefined && !left) choose();
  if (!dialog.open) dialog.showModal();
}

function choose(): void {
  showStep('choose');
  setText('import-reading', '');
  show('import-undo-last', undoable.length > 0);
  fileInput.focus();
}

function showStep(step: 'choose' | 'preview' | 'run', failure = ''): void {
  for (const each of ['choose', 'preview', 'run']) show(`import-${each}`, each === step);
  setText('import-failure', failure);
}

/** Shows what a file contains, or why it cannot be imported. */
async function read(files: readonly File[]): Promise<void> {
  showStep('choose');
  setText('import-reading', 'Reading the file …');
  const found = await open(files).catch((error: unknown) => {
    if (error instanceof PlantStoreError) return error.detail;
    if (error instanceof InvalidFile) return error.message;
    throw error;
  });
  setText('import-reading', '');
  if (running !== undefined) return; // an import has started while the file was read
  if (typeof found === 'string') return showStep('choose', found);
  file = found.file;
  left = undefined;
  showStep('preview');
  showPreview(file, found.known);
}

/** Rejects with InvalidFile or a PlantStoreError. */
async function open(files: readonly File[]) {
  const opened = await openFile(files);
  return { file: opened, known: can('plants:read') ? await readKnown(store) : undefined };
}

async function run(): Promise<void> {
  if (file === undefined || running !== undefined) return;
  const { rows, key } = file;
  const { signal } = (running = new AbortController());
  if (left === undefined) {
    undoable = [];
    remember(importKey, new Date().toISOString(), 'device');
  }
  isOffered = false;
  left = rows.length;
  counts = { ...noCounts };
  refusals = [];
  byId('import-bar', HTMLProgressElement).max = Math.max(1, rows.length);
  showStep('run');
  showRun();
  const keyOf = (_: unknown, row: number) => `${key} ${row}`;
  let failure = '';
  try {
    const update = can('plants:read');
    const options = { store, rows, keyOf, update, concurrency, signal };
    for await (const outcome of importPlants(options)) {
      left--;
      const { status } = outcome;
      counts[status]++;
      if (status === 'refused') refusals.push(outcome);
      if (status === 'added' || status === 'updated') undoable.push(outcome);
      drawSoon();
    }
  } catch (error) {
    if (!signal.aborted) failure = error instanceof PlantStoreError ? error.detail : String(error);
  }
  running = undefined;
  refusals.sort((one, other) => one.row - other.row); // the last rows are sent first
  showRun();
  const summary = summaryOf(counts, formatCount);
  const text = left > 0 ? `Not complete. ${summary} ${countOf(left, 'row')} left.` : summary;
  setText('import-failure', failure);
  setText('import-done', text);
  if (!dialog.open) tell(text);
  if (counts.added + counts.updated > 0) reload();
}

/** Shows how an import ended whose dialog is closed, and offers once to undo it if it is complete. */
function tell(text: string): void {
  const all = undoable;
  if (left || all.length === 0) return void toast(text);
  isOffered = true;
  closeOffer = offerUndo(text, () => undo(all));
}

/** Undoes all that an import has done. A second time, there is nothing left. */
async function undo(all: ImportOutcome[]): Promise<void> {
  const closeMessage = toast(sentence`Undoing the import of ${countOf(all.length, 'plant')} …`);
  if (all === undoable) {
    // With the same keys, the service would not add again what is undone.
    left = 0;
    show('import-continue', false);
  }
  let [undone, kept] = [0, 0];
  try {
    for await (const { isUndone } of undoImport(store, all, concurrency)) {
      if (isUndone) undone++;
      else kept++;
    }
  } finally {
    closeMessage();
    reload();
  }
  const rest =
    kept > 0 ? ` ${countOf(kept, 'plant')} changed since then, and stay as they are.` : '';
  const text = `Undid the import of ${countOf(undone, 'plant')}.${rest}`;
  if (all === undoable) for (const id of ['import-done', 'import-reading']) setText(id, text);
  if (!dialog.open) toast(text);
  all.length = 0;
  for (const [id, next] of Object.entries(undoButtons)) {
    const button = byId(id, HTMLButtonElement);
    if (button.matches(':focus')) byId(next, HTMLButtonElement).focus();
    button.hidden = undoable.length === 0;
  }
}

const drawSoon = inNextFrame(drawCounts);

function drawCounts(): void {
  const { added, 'already added': before, updated, unchanged, refused } = counts;
  byId('import-bar', HTMLProgressElement).value = added + before + updated + unchanged + refused;
  setText('import-added', formatCount(added));
  setText('import-updated', formatCount(updated));
  setText('import-before', formatCount(before + unchanged));
  setText('import-refused', formatCount(refused));
}

/** Shows an import that runs, or one that has ended, with the refused rows. */
function showRun(): void {
  const isRunning = running !== undefined;
  const name = file?.name ?? '';
  drawCounts();
  setText('import-running', isRunning ? sentence`Importing ${name} …` : name);
  setText('import-done', '');
  show('import-stop', isRunning);
  show('import-continue', !isRunning && Boolean(left));
  show('import-download', !isRunning && counts.refused > 0);
  show('import-again', !isRunning);
  show('import-undo', !isRunning && undoable.length > 0);
  const next = left ? 'import-continue' : 'import-hide';
  if (dialog.open) byId(isRunning ? 'import-stop' : next, HTMLButtonElement).focus();

  show('import-refused-list', !isRunning && counts.refused > 0);
  const shown = refusals.slice(0, maxShownRefusals);
  const cellsIn = ({ row, reason = '' }: ImportOutcome) => [
    element(
      'td',
      {},
      element('p', {}, contentOf(file?.rows[row - 1])),
      element('p', { className: 'hint' }, reason),
    ),
  ];
  showRows('import-refusals', shown, placeOf, cellsIn);
  const more = refusals.length - shown.length;
  const hint = `${formatCount(more)} more. Save the refused rows to see them.`;
  setText('import-refused-more', more > 0 ? hint : '');
}

function saveRefused(): void {
  if (file === undefined) return;
  save(refusedRows(file, refusals), `${file.name.replace(/\.\w+$/, '')}-refused.csv`);
}
