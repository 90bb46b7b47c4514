/**
 * The page: puts its parts together. docs/how-to/page.md describes what it does, decision 31 why it is built this way.
 */
import { PlantStoreError, type Plant, type Token } from '../client/client.ts';
import { addDialog } from './dialogs/add-dialog.ts';
import { plantDialog } from './dialogs/plant-dialog.ts';
import { SharingDialog } from './dialogs/sharing-dialog.ts';
import { TokensDialog } from './dialogs/tokens-dialog.ts';
import { offerExport } from './files/export.ts';
import { ImportDialog } from './files/import-dialog.ts';
import { serviceUrl } from './session/connection.ts';
import { Session } from './session/session.ts';
import { byId, copy, element, hashParameter, onPress, setText, show } from './shared/dom.ts';
import { countOf } from './shared/format.ts';
import { toast } from './shared/toast.ts';
import { deletePlants } from './table/delete-plants.ts';
import { pageSize, PlantList } from './table/plant-list.ts';
import { Selection } from './table/selection.ts';
import { Table } from './table/table.ts';

/** What the table shows: undefined for all plants. It is in the address after `#`, so that the back button works. */
let filter: string | undefined;
let canWrite = false;
let canRead = false;
let list: PlantList | undefined;
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
const openPlant = plantDialog(store, (plant) => remove([plant]), removePlant);
const table = new Table(selection, {
  open: (plant) => void openPlant(plant, canWrite),
  filter: toggleFilter,
  delete: (plants) => void remove(plants),
  canDelete: () => canWrite,
});
const openAdd = addDialog(store, (plant) => {
  suggestTags([plant]);
  const isShown = filter === undefined || plant.tag === filter;
  const row = isShown ? list?.add(plant) : undefined;
  if (row !== undefined) table.activate(row);
});
const sharingDialog = new SharingDialog(connection, reload);
const tokensDialog = new TokensDialog(connection, () => session.signOut());
const importDialog = new ImportDialog(store, reload);
offerExport(store, () => filter);

/** Shows what this token grants. */
function openStore({ scopes }: Token): void {
  canRead = scopes.includes('plants:read');
  canWrite = scopes.includes('plants:write');
  byId('store', HTMLElement).classList.toggle('read-only', !canWrite);
  show('store');
  for (const id of ['add-open', 'empty-add']) show(id, canWrite);
  for (const id of ['filter', 'tools', 'grid']) show(id, canRead);
  show('unreadable', !canRead);
  importDialog.allow(canRead && canWrite);
  filter = hashParameter('tag');
  reload();
}

/** Shows the plants of the filter as they are now in the service, from the beginning. */
function reload(): void {
  if (!canRead) return;
  const tag = filter;
  const read = async (after: number | undefined) => {
    const options = { fields: ['id', 'name', 'tag'], pageSize, tag, after } as const;
    const { value: plants } = await store.pages(options).next();
    suggestTags(plants ?? []);
    return plants ?? [];
  };
  const opened = new PlantList(read, () => {
    if (list === opened) drawPlants(opened);
  });
  list = opened;
  selection.clear();
  drawPlants(opened);
  table.show(opened);
}

async function remove(plants: readonly Plant[]): Promise<void> {
  const onBegin = () => {
    selection.clear();
    table.focus();
  };
  await deletePlants(store, plants, onBegin, removePlant);
}

function removePlant({ id }: Plant): void {
  list?.remove(id);
}

function suggestTags(plants: readonly Plant[]): void {
  for (const { tag } of plants) if (tag !== '' && knownTags.size < maxKnownTags) knownTags.add(tag);
  byId('known-tags', HTMLDataListElement).replaceChildren(
    ...knownTags.values().map((value) => element('option', { value })),
  );
}

function drawPlants({ count, isComplete, isFull, failure }: PlantList): void {
  const isEmpty = isComplete && count === 0;
  show('empty', isEmpty && filter === undefined);
  show('no-match', isEmpty && filter !== undefined);
  show('failed', failure !== undefined);
  show('grid', !isEmpty && failure === undefined);
  if (failure instanceof PlantStoreError) {
    setText('failed-title', failure.title);
    setText('failed-text', failure.detail);
  }
  const total = isComplete ? countOf(count, 'plant') : `more than ${countOf(count, 'plant')}`;
  const hint = isFull ? '. Filter by a tag to see others.' : '';
  setText('store-count', count === 0 ? '' : total + hint);
  show('filter-chip', filter !== undefined);
  setText('filter-tag', filter ?? '');
  setText('no-match-title', `No plant has the tag “${filter}”`);
  setText('export-what', `All plants${filter === undefined ? '' : ` with the tag “${filter}”`}`);
  table.refresh();
}

/** Shows only the plants with this tag, or all if it shows them already. */
function toggleFilter(tag: string): void {
  location.hash = tag === filter ? '' : new URLSearchParams({ tag }).toString();
}

addEventListener('hashchange', () => {
  if (!canRead || hashParameter('tag') === filter) return;
  filter = hashParameter('tag');
  reload();
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
  if (input.value !== '' && input.value !== filter) toggleFilter(input.value);
  input.value = '';
});

/** The command lists what the table shows. It names a variable, so that no clipboard or history has the token. */
async function copyCurl(): Promise<void> {
  const url = new URL('plants?fields=id,name,tag', serviceUrl);
  if (filter !== undefined) url.search += `&${new URLSearchParams({ tag: filter })}`;
  const address = url.href.replaceAll("'", '%27');
  const isCopied = await copy(`curl '${address}' -H "Authorization: Bearer $PLANT_STORE_TOKEN"`);
  if (isCopied) toast('Copied. The command reads your token from $PLANT_STORE_TOKEN.');
  else toast('The browser did not allow copying. Open the page over HTTPS.');
}

for (const id of ['filter-clear', 'no-match-clear']) onPress(id, () => void (location.hash = ''));
for (const id of ['add-open', 'empty-add']) onPress(id, () => openAdd(filter));
onPress('copy-view', copyCurl);
onPress('failed-retry', reload);
onPress('sharing-open', () => sharingDialog.open());
onPress('tokens-open', () => tokensDialog.open());

await session.start();
