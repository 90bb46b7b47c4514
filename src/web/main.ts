/**
 * The page: its parts, and what it shows around the table. docs/how-to/page.md describes what it does, decision 31 why
 * it is built this way.
 */
import { PlantStoreError } from '../client/client.ts';
import { textFields } from '../client/types.ts';
import { openAdd } from './dialogs/add-dialog.ts';
import { binDialog } from './dialogs/bin-dialog.ts';
import { openLinkedPlant } from './dialogs/linked-plant.ts';
import { sharingDialog } from './dialogs/sharing-dialog.ts';
import { tokensDialog } from './dialogs/tokens-dialog.ts';
import { exportAs } from './files/export.ts';
import { serviceUrl } from './session/connection.ts';
import { info, start } from './session/session.ts';
import { byId, copy, onChange, onPress, sentence, setText, show } from './shared/dom.ts';
import { countOf, formatCount } from './shared/format.ts';
import { toast } from './shared/toast.ts';
import { deletePlants } from './table/delete-plants.ts';
import { openLive } from './table/live.ts';
import { list, reload, showOnly, view } from './table/plants.ts';
import { openRetag } from './table/retag.ts';
import { drawSearchBox } from './table/search-box.ts';
import { clearSelection, drawSelection, selectAll, selectedPlants } from './table/selection.ts';
import { drawTable } from './table/table.ts';
import { parametersOf, textOf } from './table/view.ts';

// Some dialogs are loaded after the first view, which is lighter without them.
const returnDialog = () => import('./dialogs/return-dialog.ts');
const importDialog = () => import('./files/import-dialog.ts');
const labelsDialog = () => import('./files/labels-dialog.ts');
const peopleDialog = () => import('./dialogs/people-dialog.ts');

const buttons = {
  'add-open': openAdd,
  'empty-add': openAdd,
  'bin-open': () => binDialog.open(),
  'return-open': async () => (await returnDialog()).returnDialog.open(),
  'people-open': async () => (await peopleDialog()).peopleDialog.open(),
  'sharing-open': () => sharingDialog.open(),
  'tokens-open': () => tokensDialog.open(),
  'import-open': async () => (await importDialog()).openImport(),
  'empty-import': async () => (await importDialog()).openImport(),
  'export-csv': () => exportAs('csv'),
  'export-json': () => exportAs('json'),
  'export-labels': async () => (await labelsDialog()).openLabels(),
  'copy-view': copyCurl,
  'filter-clear': () => showOnly({ ...view, tag: undefined }),
  'no-match-clear': () => showOnly({ sort: view.sort }),
  'failed-retry': reload,
  'sort-id': () => showOnly({ ...view, sort: undefined }),
  'sort-name': () => showOnly({ ...view, sort: view.sort === 'name' ? '-name' : 'name' }),
  'selection-all': selectAll,
  'selection-retag': openRetag,
  'selection-clear': clearSelection,
  'selection-labels': async () => (await labelsDialog()).openLabels(selectedPlants()),
  'selection-delete': () => deletePlants(selectedPlants()),
};
for (const [id, press] of Object.entries(buttons)) onPress(id, press);
for (const button of document.querySelectorAll('[data-close]')) {
  button.addEventListener('click', () => {
    button.closest('dialog')?.close();
    button.closest<HTMLElement>('[popover]')?.hidePopover();
  });
}
for (const draw of [drawSummary, drawSearchBox, drawSelection, drawTable]) onChange(draw);

/** Draws how many plants there are, and what takes the place of the table if there are none. */
function drawSummary(): void {
  if (list === undefined) return;
  const { count, total, isComplete, isFull, failure, owners } = list;
  const { tag, q } = view;
  const isEmpty = isComplete && count === 0;
  const isFiltered = (tag ?? q) !== undefined;
  show('empty', isEmpty && !isFiltered);
  show('no-match', isEmpty && isFiltered);
  show('failed', failure !== undefined);
  show('grid', !isEmpty && failure === undefined);
  if (failure instanceof PlantStoreError) {
    setText('failed-title', failure.title);
    setText('failed-text', failure.detail);
  }
  const known = countOf(total ?? count, 'plant');
  const text = total === undefined ? `more than ${known}` : known;
  const hint = isFull
    ? `. The table shows ${formatCount(count)} of them: search, or filter by a tag, to see others.`
    : '';
  setText('store-count', count === 0 ? '' : text + hint);
  show('filter-chip', tag !== undefined);
  setText('filter-tag', tag ?? '');
  setText('no-match-title', sentence`No plants${textOf(view)}`);
  setText('export-what', sentence`All plants${textOf(view)}`);
  const hasOthers = [...owners].some((owner) => owner !== info?.user);
  byId('grid', HTMLElement).classList.toggle('with-owners', hasOthers);
}

addEventListener('unhandledrejection', ({ reason }) => {
  if (reason instanceof PlantStoreError) toast(`${reason.title}. ${reason.detail}`);
  // An aborted task is one that nobody needs any more.
  else if (reason instanceof Error && reason.name !== 'AbortError') {
    toast(`The page could not do this. ${reason.message}`);
  }
});

/** The command lists what the table shows. It names a variable, so that no clipboard or history has the token. */
async function copyCurl(): Promise<void> {
  const url = new URL(`plants?fields=${['id', ...textFields].join()}`, serviceUrl);
  const parameters = parametersOf({ ...view, sort: undefined }); // a sorted list would be only a page
  if (parameters !== '') url.search += `&${parameters}`;
  const address = url.href.replaceAll("'", '%27');
  const isCopied = await copy(`curl '${address}' -H "Authorization: Bearer $PLANT_STORE_TOKEN"`);
  if (isCopied) toast('Copied. The command reads your token from $PLANT_STORE_TOKEN.');
  else toast('The browser did not allow copying. Open the page over HTTPS.');
}

await start(async () => {
  show('store');
  await openLive();
  await openLinkedPlant();
  await importDialog();
});
