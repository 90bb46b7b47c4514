/**
 * The dialog with the deleted plants that the user can restore, the newest deletion first. Plants that somebody deleted at
 * once are one entry.
 */
import type { DeletedPlant } from '../../client/client.ts';
import { optionalTexts } from '../../client/types.ts';
import { can, info, store } from '../session/session.ts';
import { joined, sentence, type Text } from '../shared/dom.ts';
import { countOf, formatDay } from '../shared/format.ts';
import { bringBack, restore } from '../table/delete-plants.ts';
import { addPlants } from '../table/plants.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

/** Maximum number of plants that are read: as many as the table deletes at once. */
const maxPlants = 10_000;
const pageSize = 250;
/** Maximum number of plants of a deletion that are listed. */
const maxListed = 500;
/** If somebody deletes a plant this soon after another one, both were deleted at once. */
const atOnceMs = 5_000;

/** Plants that were deleted at once, the newest first. */
type Deletion = [DeletedPlant, ...DeletedPlant[]];

/** The deletions whose plants are listed, as `keyOf` names them. */
const unfolded = new Set<string>();

export const binDialog: MenuDialog<Deletion[]> = new MenuDialog('bin', {
  prepare() {
    unfolded.clear();
    draw([]);
  },
  async read() {
    const deletions: Deletion[] = [];
    let count = 0;
    for await (const plant of store.listDeleted({ pageSize })) {
      const last = deletions.at(-1);
      if (last !== undefined && isAtOnce(last, plant)) last.push(plant);
      else deletions.push([plant]);
      count++;
      if (deletions.length > binDialog.maxShown || count === maxPlants) break;
    }
    return deletions;
  },
  draw,
  send: () => binDialog.loadMore(),
});

function isAtOnce(deletion: Deletion, { deletedBy, deletedAt }: DeletedPlant): boolean {
  const last = deletion.at(-1) ?? deletion[0];
  return (
    last.deletedBy === deletedBy && Date.parse(last.deletedAt) - Date.parse(deletedAt) < atOnceMs
  );
}

/** Names a deletion, also after plants of it were restored. */
function keyOf(deletion: Deletion): string {
  const { deletedAt, deletedBy = '' } = deletion.at(-1) ?? deletion[0];
  return `${deletedAt} ${deletedBy}`;
}

function draw(deletions: readonly Deletion[]): void {
  const shown = binDialog.first(deletions, 'bin-form');
  drawEntries('bin-plants', shown.flatMap(entriesOf), (entry) => entry());
}

/** What draws the entries of a deletion. Its plants follow it while they are listed. */
function entriesOf(deletion: Deletion): (() => HTMLElement)[] {
  const [plant, ...others] = deletion;
  if (others.length === 0) return [() => plantEntry(plant)];
  const plants = unfolded.has(keyOf(deletion)) ? deletion.slice(0, maxListed) : [];
  return [() => deletionEntry(deletion), ...plants.map((each) => () => plantEntry(each))];
}

function deletionEntry(deletion: Deletion): HTMLElement {
  const key = keyOf(deletion);
  const what = countOf(deletion.length, 'plant');
  const { deletedBy = 'the operator', deletedAt } = deletion[0];
  const name = `${what} deleted by ${deletedBy}, ${formatDay(deletedAt)}`;
  const names = deletion.slice(0, 3).map((plant) => plant.name);
  const more = deletion.length > names.length ? ' …' : '';
  const facts = [sentence`${joined(names, ', ')}${more}`, ...originOf(deletion[0])];
  const isUnfolded = unfolded.has(key);
  if (isUnfolded && deletion.length > maxListed) facts.push(`the latest ${maxListed} are below`);
  const fold = binDialog.button([isUnfolded ? 'Hide' : 'Show', name], async () => {
    if (!unfolded.delete(key)) unfolded.add(key);
    await binDialog.load();
    return '';
  });
  if (!can('plants:write')) return entryOf(what, facts, fold);
  const all = binDialog.button(['Restore all', name], async () => {
    const isDone = await bringBack(deletion);
    await binDialog.load();
    return isDone ? `Restored ${what}.` : '';
  });
  return entryOf(what, facts, fold, all);
}

function originOf({ deletedAt, deletedBy = 'the operator' }: DeletedPlant): Text[] {
  return [sentence`deleted by ${deletedBy}`, formatDay(deletedAt)];
}

function plantEntry(plant: DeletedPlant): HTMLElement {
  const { name, owner } = plant;
  const facts: Text[] = [
    ...optionalTexts.map((field) => plant[field]).filter((text) => text !== ''),
    ...(owner === info?.user ? [] : [sentence`owned by ${owner}`]),
    ...originOf(plant),
  ];
  if (!can('plants:write')) return entryOf(name, facts);
  return entryOf(
    name,
    facts,
    binDialog.button(['Restore', name], () => restoreOne(plant)),
  );
}

async function restoreOne(plant: DeletedPlant): Promise<Text> {
  const { current, fault } = await binDialog.change(() => restore(plant));
  if (current !== undefined) addPlants([current]);
  return fault ?? sentence`Restored “${current?.name ?? ''}”.`; // with this id, another plant can have been deleted since
}
