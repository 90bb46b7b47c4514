/**
 * The page: puts its parts together. docs/page.md describes what it does, decision 31 why it is built this way.
 */
import { PlantStoreError, type Token } from '../client/client.ts';
import { AddDialog } from './add-dialog.ts';
import { Connection } from './connection.ts';
import { copyCurl, curlOf, curlOfPlant } from './curl.ts';
import { Deletions } from './deletions.ts';
import { byId, onPress, setText, show } from './dom.ts';
import { Exporter } from './export.ts';
import { Fields } from './fields.ts';
import { formatCount, plantCount, tagText } from './format.ts';
import { ImportDialog } from './import.ts';
import { PlantDialog } from './plant-dialog.ts';
import { pageSize, PlantPages, type Plant } from './plant-pages.ts';
import { Selection } from './selection.ts';
import { Session } from './session.ts';
import type { SharingDialog } from './sharing-dialog.ts';
import { Table } from './table.ts';
import { Tags } from './tags.ts';
import { toast } from './toast.ts';
import type { TokensDialog } from './tokens-dialog.ts';

/** What the table shows: undefined for all plants. It is in the address after `#`, so that the back button works. */
let filter: string | undefined;
let canWrite = false;
let canRead = false;
let pages: PlantPages | undefined;
let leavePages = new AbortController();
/** The dialogs of the menu are loaded when they are first opened: most visits need none of them. */
let sharingDialog: SharingDialog | undefined;
let tokensDialog: TokensDialog | undefined;

const connection = new Connection({
  refresh: () => session.refresh(),
  renew: () => session.renew(),
});
const session = new Session(connection, openStore);
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
const tags = new Tags(connection, { onFilter: toggleFilter, onCount: drawHeading });
const plantDialog = new PlantDialog(connection, {
  onDelete: (plant) => deletions.delete([plant]),
  onGone: removePlant,
});
const table = new Table(selection, {
  open: (plant) => void plantDialog.open(plant, { canDelete: canWrite }),
  copy: ({ id }) => void copy(curlOfPlant(id)),
  filter: toggleFilter,
  delete: (plants) => void deletions.delete(plants),
  canDelete: () => canWrite,
});
const addDialog = new AddDialog(connection, (plant) => {
  tags.change(plant, 1);
  const isShown = filter === undefined || plant.tag === filter;
  const row = isShown ? pages?.add(plant) : undefined;
  if (row !== undefined) table.reveal(row, plant.id);
});
const importDialog = new ImportDialog(connection, reload);
const fields = new Fields(() => table.refresh());
const exporter = new Exporter(connection, () => ({ fields: fields.shown, tag: filter }));

/** Shows the store of a token, from the beginning. */
function openStore(token: Token): void {
  const { scopes } = token;
  exporter.stop();
  deletions.reset();
  plantDialog.close();
  selection.clear();
  leavePages.abort();
  pages = undefined;
  void importDialog.use(token);
  sharingDialog?.use(token);
  tokensDialog?.use(token);
  canRead = scopes.includes('plants:read');
  canWrite = scopes.includes('plants:write');
  byId('store', HTMLElement).classList.toggle('read-only', !canWrite);
  setText('grid-keys', keys());
  show('store');
  for (const id of ['add-open', 'empty-add']) show(id, canWrite);
  for (const id of ['filter', 'tools', 'grid', 'tags-card']) show(id, canRead);
  show('unreadable', !canRead);
  tags.clear();
  table.clear();
  drawHeading();
  filter = filterOfAddress();
  reload();
}

/** Shows the plants and the tags as they are now in the service. */
function reload(): void {
  if (!canRead) return;
  void tags.restart();
  showPlants();
}

/** Shows the plants of the filter, from the beginning. */
function showPlants(): void {
  leavePages.abort();
  const { signal } = (leavePages = new AbortController());
  const tag = filter;
  const read = (after: number | undefined) =>
    connection.page({ fields: ['id', 'name', 'tag'], limit: pageSize, tag, after, signal });
  const list = new PlantPages(read, () => {
    if (list === pages) drawPlants(list);
  });
  pages = list;
  selection.clear();
  tags.mark(tag);
  drawPlants(list);
  table.show(list);
}

function removePlant(plant: Plant): void {
  pages?.remove(plant.id);
  tags.change(plant, -1);
}

function drawPlants({ count, isComplete, failure }: PlantPages): void {
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
  const shown = pages?.isComplete ? pages.count : undefined;
  const total = filter === undefined ? (tags.total ?? shown) : shown;
  const text =
    total === undefined ? `more than ${formatCount(pages?.count ?? 0)}` : plantCount(total);
  setText('store-count', pages === undefined || pages.count === 0 ? '' : text);
  show('filter-chip', filter !== undefined);
  setText('filter-tag', tagText(filter ?? ''));
  setText(
    'no-match-title',
    filter === '' ? 'Every plant has a tag' : `No plant has the tag “${filter}”`,
  );
  setText('export-what', `${shownPlants()}: ${fields.shown.join(', ')}`);
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

async function copy(command: string): Promise<void> {
  toast(await copyCurl(command));
}

function keys(): string {
  return canWrite
    ? '↑ ↓ move · Space select · Enter open · C copy · Delete delete'
    : '↑ ↓ move · Enter open · C copy';
}

addEventListener('hashchange', () => {
  if (!canRead || filterOfAddress() === filter) return;
  filter = filterOfAddress();
  showPlants();
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
onPress('copy-view', () => copy(curlOf('plants', { fields: fields.shown.join(), tag: filter })));
onPress('failed-retry', showPlants);
onPress('sharing-open', async () => {
  const { SharingDialog } = await import('./sharing-dialog.ts').catch(refuseLoading);
  await (sharingDialog ??= new SharingDialog(connection, reload)).open();
});
onPress('tokens-open', async () => {
  const { TokensDialog } = await import('./tokens-dialog.ts').catch(refuseLoading);
  tokensDialog ??= new TokensDialog(connection, () => session.signOut());
  await tokensDialog.open();
});

function refuseLoading(): never {
  throw new Error('Its file could not be loaded. Reload the page.'); // browsers do not try again
}

await session.start();
