/**
 * The dialog that adds the plants of a CSV or JSON file: choose, preview, import. An import continues while the dialog
 * is closed, and ends with the page.
 */
import { PlantStoreError } from '../../client/client.ts';
import { importedFields, InvalidFile, type ImportRow } from '../../client/read-rows.ts';
import { importPlants, placeOf, summaryOf, type ImportOutcome } from '../../client/send-rows.ts';
import { leaving } from '../session/connection.ts';
import { can, store } from '../session/session.ts';
import { byId, element, inNextFrame, onPress, sentence, setText, show } from '../shared/dom.ts';
import { countOf, formatCount } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { reload } from '../table/plants.ts';
import { save } from './export.ts';
import { readFile, refusedRows, textOf, type ImportFile } from './import-file.ts';

/** The requests in flight. Browsers limit them to 6 for each service with HTTP/1.1. */
const concurrency = 16;
const maxPreviewed = 5;
const maxShownRefusals = 200;

const dialog = byId('import', HTMLDialogElement);
const fileInput = byId('import-file', HTMLInputElement);
let file: ImportFile | undefined;
/** The number of rows of the file that have no outcome yet; undefined before its import begins. */
let left: number | undefined;
let counts = { added: 0, 'already added': 0, refused: 0 };
let refusals: ImportOutcome[] = [];
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

/** Opens the dialog, at an import that is not complete if there is one. */
export function openImport(): void {
  if (running === undefined && !left) choose();
  if (!dialog.open) dialog.showModal();
}

function choose(): void {
  showStep('choose');
  fileInput.focus();
}

function showStep(step: 'choose' | 'preview' | 'run', failure = ''): void {
  for (const each of ['choose', 'preview', 'run']) show(`import-${each}`, each === step);
  setText('import-failure', failure);
}

/** Shows what a file contains, or why it cannot be imported. */
async function read(files: readonly File[]): Promise<void> {
  const found = await readFile(files).catch((error: unknown) => {
    if (error instanceof InvalidFile) return error;
    throw error;
  });
  if (running !== undefined) return; // an import has started while the file was read
  if (found instanceof InvalidFile) return showStep('choose', found.message);
  file = found;
  left = undefined;
  showStep('preview');
  const { name, rows } = file;
  setText('import-source', sentence`${name}: ${countOf(rows.length, 'row')}`);
  const previewed = rows.slice(0, maxPreviewed);
  showRows('import-rows', previewed, ({ line }, at) => placeOf({ row: at + 1, line }), cellsOf);
  const more = rows.length - previewed.length;
  setText('import-more', more > 0 ? `and ${formatCount(more)} more` : '');
  setText('import-submit', `Import ${countOf(rows.length, 'row')}`);
  byId('import-submit', HTMLButtonElement).focus();
}

function cellsOf(row: ImportRow): HTMLElement[] {
  if (!('fault' in row))
    return importedFields.map((field) => element('td', {}, textOf(row.plant[field])));
  return [element('td', { colSpan: importedFields.length, className: 'fault' }, row.fault)];
}

async function run(): Promise<void> {
  if (file === undefined || running !== undefined) return;
  const { rows, key } = file;
  const { signal } = (running = new AbortController());
  left = rows.length;
  counts = { added: 0, 'already added': 0, refused: 0 };
  refusals = [];
  byId('import-bar', HTMLProgressElement).max = Math.max(1, rows.length);
  showStep('run');
  showRun();
  const keyOf = (_: unknown, row: number) => `${key} ${row}`;
  let failure = '';
  try {
    for await (const outcome of importPlants({ store, rows, keyOf, concurrency, signal })) {
      left--;
      counts[outcome.status]++;
      if (outcome.status === 'refused') refusals.push(outcome);
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
  if (!dialog.open) toast(text);
  if (counts.added > 0) reload();
}

const drawSoon = inNextFrame(drawCounts);

function drawCounts(): void {
  const { added, 'already added': before, refused } = counts;
  byId('import-bar', HTMLProgressElement).value = added + before + refused;
  setText('import-added', formatCount(added));
  setText('import-before', formatCount(before));
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
  const next = left ? 'import-continue' : 'import-hide';
  if (dialog.open) byId(isRunning ? 'import-stop' : next, HTMLButtonElement).focus();

  show('import-refused-list', !isRunning && counts.refused > 0);
  const shown = refusals.slice(0, maxShownRefusals);
  const reasonOf = ({ reason = '' }: ImportOutcome) => [element('td', {}, reason)];
  showRows('import-refusals', shown, placeOf, reasonOf);
  const more = refusals.length - shown.length;
  const hint = `${formatCount(more)} more. Save the refused rows to see them.`;
  setText('import-refused-more', more > 0 ? hint : '');
}

/** Shows rows of the file, each with its place. */
function showRows<Row>(
  id: string,
  rows: readonly Row[],
  placeIn: (row: Row, at: number) => string,
  cellsIn: (row: Row) => HTMLElement[],
): void {
  byId(id, HTMLElement).replaceChildren(
    ...rows.map((row, at) =>
      element('tr', {}, element('td', {}, placeIn(row, at)), ...cellsIn(row)),
    ),
  );
}

function saveRefused(): void {
  if (file === undefined) return;
  save(refusedRows(file, refusals), `${file.name.replace(/\.\w+$/, '')}-refused.csv`);
}
