/**
 * The dialog with the deleted plants that the user can restore, the newest deletion first.
 */
import type { DeletedPlant } from '../../client/client.ts';
import { optionalTexts } from '../../client/types.ts';
import { can, info, store } from '../session/session.ts';
import { byId, sentence, show, type Text } from '../shared/dom.ts';
import { formatTime } from '../shared/format.ts';
import { restore } from '../table/delete-plants.ts';
import { addPlants } from '../table/plants.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

/** How many plants the dialog shows, and how many more at each press. */
const moreCount = 50;
/** Maximum number of plants in a response. */
const maxPage = 1_000;

let maxShown = moreCount;

export const binDialog: MenuDialog<DeletedPlant[]> = new MenuDialog('bin', {
  prepare() {
    maxShown = moreCount;
    draw([]);
  },
  async read() {
    const found: DeletedPlant[] = [];
    for await (const plant of store.listDeleted({ pageSize: Math.min(maxShown + 1, maxPage) })) {
      found.push(plant);
      if (found.length > maxShown) break;
    }
    return found;
  },
  draw,
  send() {
    maxShown = byId('bin-plants', HTMLElement).childElementCount + moreCount;
    return binDialog.load();
  },
});

/** Draws the plants, and a button if there is one more than are shown. */
function draw(plants: readonly DeletedPlant[]): void {
  show('bin-form', plants.length > maxShown);
  drawEntries('bin-plants', plants.slice(0, maxShown), entry);
}

function entry(plant: DeletedPlant): HTMLElement {
  const { name, owner, deletedAt, deletedBy = 'the operator' } = plant;
  const facts: Text[] = [
    ...optionalTexts.map((field) => plant[field]).filter((text) => text !== ''),
    ...(owner === info?.user ? [] : [sentence`owned by ${owner}`]),
    sentence`deleted by ${deletedBy}`,
    formatTime(deletedAt),
  ];
  if (!can('plants:write')) return entryOf(name, facts);
  return entryOf(
    name,
    facts,
    binDialog.button(['Restore', name], () => bringBack(plant)),
  );
}

async function bringBack(plant: DeletedPlant): Promise<Text> {
  const { current, fault } = await binDialog.change(() => restore(plant));
  if (current !== undefined) addPlants([current]);
  return fault ?? sentence`Restored “${current?.name ?? ''}”.`; // with this id, another plant can have been deleted since
}
