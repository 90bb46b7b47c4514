/**
 * The page: puts its parts together. docs/how-to/page.md describes what it does, decision 31 why it is built this way.
 */
import { PlantStoreError, type Plant, type Token } from '../client/client.ts';
import { printable } from '../client/printable.ts';
import { textFields } from '../client/types.ts';
import { addDialog } from './dialogs/add-dialog.ts';
import { BinDialog } from './dialogs/bin-dialog.ts';
import { plantDialog } from './dialogs/plant-dialog.ts';
import { SharingDialog } from './dialogs/sharing-dialog.ts';
import { TokensDialog } from './dialogs/tokens-dialog.ts';
import { offerExport } from './files/export.ts';
import { ImportDialog } from './files/import-dialog.ts';
import { serviceUrl } from './session/connection.ts';
import { Session } from './session/session.ts';
import { byId, copy, element, onPress, sentence, setText, show } from './shared/dom.ts';
import { countOf } from './shared/format.ts';
import { announce, toast } from './shared/toast.ts';
import { deletePlants, restorePlants } from './table/delete-plants.ts';
import { Editor } from './table/editor.ts';
import { pageSize, PlantList } from './table/plant-list.ts';
import { SearchBox } from './table/search-box.ts';
import { Selection } from './table/selection.ts';
import { Table } from './table/table.ts';
import { hasTag, pagesOf, parametersOf, textOf, viewOfAddress, type View } from './table/view.ts';

let view: View = {};
let canRead = false;
let list: PlantList | undefined;
/** The list of a search, until its first plants arrive. */
let nextList: PlantList | undefined;
/** Tags of the plants that were loaded, to suggest them. */
const knownTags = new Set<string>();
const maxKnownTags = 100;

const session = new Session(openStore, () => importDialog.stop());
const { connection } = session;
const { store } = connection;
const selection = new Selection({
  onChange: () => table.refresh(),
  onDelete: () => remove(selection.plants),
});
const editor = new Editor(store, { onRead: updatePlant, onGone: removePlant });
const openPlant = plantDialog(store, {
  edit: (plant) => table.edit(plant),
  delete: (plant) => remove([plant]),
  restore: (plant) => restorePlants(store, [plant], addPlants),
  onRead: updatePlant,
  onGone: removePlant,
});
const table = new Table(selection, editor, {
  open: (plant) => void openPlant(plant),
  filter: toggleTag,
  delete: (plants) => void remove(plants),
});
const openAdd = addDialog(store, (plant) => addPlants([plant]));
const searchBox = new SearchBox(search);
const sharingDialog = new SharingDialog(connection, reload);
const tokensDialog = new TokensDialog(connection, () => session.signOut());
const binDialog = new BinDialog(connection, (plant) => addPlants([plant]));
const importDialog = new ImportDialog(store, reload);
offerExport(store, () => view);

/** Shows what this token grants. */
function openStore({ scopes }: Token): void {
  canRead = scopes.includes('plants:read');
  const canWrite = scopes.includes('plants:write');
  byId('store', HTMLElement).classList.toggle('read-only', !canWrite);
  show('store');
  for (const id of ['add-open', 'empty-add']) show(id, canWrite);
  for (const id of ['search', 'filter', 'tools', 'grid']) show(id, canRead);
  show('unreadable', !canRead);
  importDialog.allow(canRead && canWrite);
  showView();
}

/** Shows what the address asks for. */
function showView(): void {
  view = viewOfAddress();
  searchBox.set(view.q);
  reload();
}

/** Shows the plants of the view as they are now in the service, from the beginning. */
function reload(): void {
  if (canRead) showList(openList());
}

/** Shows the plants that contain a text. Until they arrive, the table stays as it is, so that it does not flicker. */
async function search(q: string | undefined): Promise<void> {
  list?.stop();
  await list?.settled();
  view = { ...view, q };
  history.replaceState(null, '', `#${parametersOf(view)}`);
  const opened = openList();
  nextList = opened;
  opened.see(0);
  await opened.settled();
  if (list === opened)
    announce(byId(opened.count === 0 ? 'no-match-title' : 'store-count', HTMLElement).textContent);
}

/** The plants of the view. */
function openList(): PlantList {
  const filter = view;
  const read = async (after: number | undefined) => {
    const { value: plants = [] } = await pagesOf(store, filter, { pageSize, after }).next();
    suggestTags(plants);
    return plants;
  };
  const opened: PlantList = new PlantList(read, () => {
    if (nextList === opened) showList(opened);
    else if (list === opened) drawPlants(opened);
  });
  return opened;
}

function showList(opened: PlantList): void {
  nextList = undefined;
  list = opened;
  selection.clear();
  drawPlants(opened);
  table.show(opened);
}

async function remove(plants: readonly Plant[]): Promise<void> {
  selection.clear();
  table.focus();
  await deletePlants(store, plants, removePlant, addPlants);
}

/** Shows plants that are new here, if they are in the view. */
function addPlants(plants: readonly Plant[]): void {
  suggestTags(plants);
  if (view.q !== undefined) return reload(); // only the service knows what contains the text
  for (const plant of plants) {
    if (!hasTag(view, plant)) continue;
    const row = (nextList ?? list)?.add(plant);
    if (row !== undefined) table.activate(row);
  }
}

/** Shows a plant as it is now. Its row stays, also if the view would no longer have it. */
function updatePlant(plant: Plant): void {
  suggestTags([plant]);
  for (const each of [list, nextList]) each?.replace(plant);
}

function removePlant(plant: Plant): void {
  for (const each of [list, nextList]) each?.remove(plant);
}

function suggestTags(plants: readonly Plant[]): void {
  // The browser shows suggestions as they are.
  const tags = plants.map(({ tag }) => tag).filter((tag) => tag !== '' && printable(tag) === tag);
  for (const tag of tags) if (knownTags.size < maxKnownTags) knownTags.add(tag);
  byId('known-tags', HTMLDataListElement).replaceChildren(
    ...knownTags.values().map((value) => element('option', { value })),
  );
}

function drawPlants({ count, isComplete, isFull, failure, owners }: PlantList): void {
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
  const total = isComplete ? countOf(count, 'plant') : `more than ${countOf(count, 'plant')}`;
  const hint = isFull ? '. Search, or filter by a tag, to see others.' : '';
  setText('store-count', count === 0 ? '' : total + hint);
  show('filter-chip', tag !== undefined);
  setText('filter-tag', tag ?? '');
  setText('no-match-title', sentence`No plants${textOf(view)}`);
  show('no-match-tag', q === undefined);
  setText('export-what', sentence`All plants${textOf(view)}`);
  byId('grid', HTMLElement).classList.toggle('with-owners', owners.size > 1);
  table.refresh();
}

/** Shows only the plants with this tag, or all if it shows only them already. */
function toggleTag(tag: string): void {
  showOnly({ ...view, tag: tag === view.tag ? undefined : tag });
}

function showOnly(wanted: View): void {
  location.hash = parametersOf(wanted);
}

addEventListener('hashchange', () => {
  if (canRead && parametersOf(viewOfAddress()) !== parametersOf(view)) showView();
});

addEventListener('unhandledrejection', ({ reason }) => {
  if (reason instanceof PlantStoreError) toast(`${reason.title}. ${reason.detail}`);
  // An aborted task is one that nobody needs any more.
  else if (reason instanceof Error && reason.name !== 'AbortError') {
    toast(`The page could not do this. ${reason.message}`);
  }
});

byId('filter', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  const input = byId('filter-input', HTMLInputElement);
  if (input.value !== '') showOnly({ ...view, tag: input.value });
  input.value = '';
});

/** The command lists what the table shows. It names a variable, so that no clipboard or history has the token. */
async function copyCurl(): Promise<void> {
  byId('more', HTMLElement).hidePopover();
  const url = new URL(`plants?fields=${['id', ...textFields].join()}`, serviceUrl);
  const parameters = parametersOf(view);
  if (parameters !== '') url.search += `&${parameters}`;
  const address = url.href.replaceAll("'", '%27');
  const isCopied = await copy(`curl '${address}' -H "Authorization: Bearer $PLANT_STORE_TOKEN"`);
  if (isCopied) toast('Copied. The command reads your token from $PLANT_STORE_TOKEN.');
  else toast('The browser did not allow copying. Open the page over HTTPS.');
}

onPress('filter-clear', () => showOnly({ ...view, tag: undefined }));
onPress('no-match-clear', () => showOnly({}));
for (const id of ['add-open', 'empty-add']) onPress(id, () => openAdd(view.tag));
onPress('copy-view', copyCurl);
onPress('failed-retry', reload);
onPress('sharing-open', () => sharingDialog.open());
onPress('tokens-open', () => tokensDialog.open());
onPress('bin-open', () => binDialog.open());

await session.start();
