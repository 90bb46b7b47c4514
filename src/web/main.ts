/**
 * The page: puts its parts together. docs/page.md describes what it does, decision 31 why it is built this way.
 */
import { PlantStoreError, type Token } from '../client/client.ts';
import { AddDialog } from './dialogs/add-dialog.ts';
import { Connection } from './session/connection.ts';
import { copyCurl } from './files/curl.ts';
import { Deletions } from './table/deletions.ts';
import { byId, element, onPress, setText, show } from './shared/dom.ts';
import { Exporter } from './files/export.ts';
import { plantCount, tagText } from './shared/format.ts';
import { ImportDialog } from './files/import.ts';
import { PlantDialog } from './dialogs/plant-dialog.ts';
import { pageSize, PlantList, type Plant } from './table/plant-list.ts';
import { Selection } from './table/selection.ts';
import { Session } from './session/session.ts';
import type { SharingDialog } from './dialogs/sharing-dialog.ts';
import { Table } from './table/table.ts';
import { toast } from './shared/toast.ts';
import type { TokensDialog } from './dialogs/tokens-dialog.ts';

/** What the table shows: undefined for all plants. It is in the address after `#`, so that the back button works. */
let filter: string | undefined;
let canWrite = false;
let canRead = false;
let list: PlantList | undefined;
let leaveList = new AbortController();
/** The dialogs of the menu are loaded when they are first opened: most visits need none of them. */
let sharingDialog: SharingDialog | undefined;
let tokensDialog: TokensDialog | undefined;

const connection = new Connection({
  refresh: () => session.refresh(),
  renew: () => session.renew(),
});
const session = new Session(connection, {
  onOpen: openStore,
  onClose: () => importDialog.stop(),
});
const selection = new Selection({
  onChange: () => table.refresh(),
  onDelete: () => deletions.delete(selection.plants),
});
const deletions = new Deletions(connection, {
  onBegin() {
    selection.clear();
    table.focus();
  },
  onGone: removePlant,
});
/** Tags of the plants that were loaded, to suggest them. */
const knownTags = new Set<string>();
const maxKnownTags = 100;
const plantDialog = new PlantDialog(connection, {
  onDelete: (plant) => deletions.delete([plant]),
  onGone: removePlant,
});
const table = new Table(selection, {
  open: (plant) => void plantDialog.open(plant, { canDelete: canWrite }),
  filter: toggleFilter,
  delete: (plants) => void deletions.delete(plants),
  canDelete: () => canWrite,
});
const addDialog = new AddDialog(connection, (plant) => {
  suggestTags([plant]);
  const isShown = filter === undefined || plant.tag === filter;
  const row = isShown ? list?.add(plant) : undefined;
  if (row !== undefined) table.reveal(row, plant.id);
});
const importDialog = new ImportDialog(connection, reload);
const exporter = new Exporter(connection, () => filter);

/** Shows the store of a token, from the beginning. */
function openStore(token: Token): void {
  const { scopes } = token;
  exporter.stop();
  deletions.reset();
  plantDialog.close();
  selection.clear();
  leaveList.abort();
  list = undefined;
  importDialog.use(token);
  sharingDialog?.use(token);
  tokensDialog?.use(token);
  canRead = scopes.includes('plants:read');
  canWrite = scopes.includes('plants:write');
  byId('store', HTMLElement).classList.toggle('read-only', !canWrite);
  setText('grid-keys', keys());
  show('store');
  for (const id of ['add-open', 'empty-add']) show(id, canWrite);
  for (const id of ['filter', 'tools', 'grid']) show(id, canRead);
  show('unreadable', !canRead);
  knownTags.clear();
  suggestTags([]);
  table.clear();
  drawHeading();
  filter = filterOfAddress();
  reload();
}

/** Shows the plants of the filter as they are now in the service, from the beginning. */
function reload(): void {
  if (!canRead) return;
  leaveList.abort();
  const { signal } = (leaveList = new AbortController());
  const tag = filter;
  const read = async (after: number | undefined) => {
    const options = { fields: ['id', 'name', 'tag'], limit: pageSize, tag, after, signal } as const;
    const plants = await connection.page(options);
    suggestTags(plants);
    return plants;
  };
  const opened = new PlantList(read, () => {
    if (list === opened) drawPlants(opened);
  });
  list = opened;
  selection.clear();
  drawPlants(opened);
  table.show(opened);
}

function removePlant(plant: Plant): void {
  list?.remove(plant.id);
}

function suggestTags(plants: readonly Plant[]): void {
  for (const { tag } of plants) if (tag !== '' && knownTags.size < maxKnownTags) knownTags.add(tag);
  byId('known-tags', HTMLDataListElement).replaceChildren(
    ...knownTags.values().map((value) => element('option', { value })),
  );
}

function drawPlants({ count, isComplete, failure }: PlantList): void {
  const isEmpty = isComplete && count === 0;
  show('empty', isEmpty && filter === undefined);
  show('no-match', isEmpty && filter !== undefined);
  show('failed', failure !== undefined);
  show('grid', !isEmpty && failure === undefined);
  if (failure instanceof PlantStoreError) {
    setText('failed-title', failure.title);
    setText('failed-text', failure.detail);
  }
  drawHeading();
  table.refresh();
}

function drawHeading(): void {
  const { count, isComplete } = list ?? { count: 0, isComplete: false };
  const text = isComplete ? plantCount(count) : `more than ${plantCount(count)}`;
  setText('store-count', count === 0 ? '' : text);
  show('filter-chip', filter !== undefined);
  setText('filter-tag', tagText(filter ?? ''));
  setText(
    'no-match-title',
    filter === '' ? 'Every plant has a tag' : `No plant has the tag “${filter}”`,
  );
  setText('export-what', shownPlants());
}

function shownPlants(): string {
  if (filter === undefined) return 'All plants';
  return filter === '' ? 'All plants without a tag' : `All plants with the tag “${filter}”`;
}

/** Shows only the plants with this tag, or all if it shows them already. */
function toggleFilter(tag: string): void {
  location.hash = tag === filter ? '' : new URLSearchParams({ tag }).toString();
}

function filterOfAddress(): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get('tag') ?? undefined;
}

function keys(): string {
  return canWrite
    ? '↑ ↓ move · Space select · Enter open · Delete delete'
    : '↑ ↓ move · Enter open';
}

addEventListener('hashchange', () => {
  if (!canRead || filterOfAddress() === filter) return;
  filter = filterOfAddress();
  reload();
});

/** They end a task that nobody needs any more. */
const quietErrors = ['AbortError', 'OtherUser'];

addEventListener('unhandledrejection', ({ reason }) => {
  if (reason instanceof PlantStoreError) toast(`${reason.title}. ${reason.detail}`);
  else if (reason instanceof Error && !quietErrors.includes(reason.name)) {
    toast(`The page could not do this. ${reason.message}`);
  }
});

byId('filter', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  applyFilter();
});
byId('filter-input', HTMLInputElement).addEventListener('input', (event) => {
  const isPicked = !(event instanceof InputEvent) || event.inputType === 'insertReplacementText';
  if (isPicked) applyFilter();
});

function applyFilter(): void {
  const input = byId('filter-input', HTMLInputElement);
  const tag = input.value;
  if (tag !== '' && tag !== filter) toggleFilter(tag);
  input.value = '';
}

for (const id of ['filter-clear', 'no-match-clear']) onPress(id, () => void (location.hash = ''));
for (const id of ['add-open', 'empty-add']) onPress(id, () => addDialog.open(filter));
onPress('copy-view', async () => void toast(await copyCurl(filter)));
onPress('failed-retry', reload);
onPress('sharing-open', async () => {
  const { SharingDialog } = await import('./dialogs/sharing-dialog.ts').catch(refuseLoading);
  await (sharingDialog ??= new SharingDialog(connection, reload)).open();
});
onPress('tokens-open', async () => {
  const { TokensDialog } = await import('./dialogs/tokens-dialog.ts').catch(refuseLoading);
  tokensDialog ??= new TokensDialog(connection, () => session.signOut());
  await tokensDialog.open();
});

function refuseLoading(): never {
  throw new Error('Its file could not be loaded. Reload the page.'); // browsers do not try again
}

await session.start();
