/**
 * The dialog with the deleted plants that the user can restore, the newest deletion first.
 */
import type { DeletedPlant } from '../../client/client.ts';
import { optionalTexts } from '../../client/types.ts';
import { can, info, store } from '../session/session.ts';
import { sentence, show, type Text } from '../shared/dom.ts';
import { formatTime } from '../shared/format.ts';
import { restore } from '../table/delete-plants.ts';
import { addPlants } from '../table/plants.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

/** How many plants the dialog shows, and how many more at each press. */
const moreCount = 50;
/** Maximum number of plants in a response. */
const maxPage = 1_000;

/** One more than is shown, if others follow. */
let plants: DeletedPlant[] = [];
let shown = 0;

export const binDialog: MenuDialog<DeletedPlant[]> = new MenuDialog('bin', {
  prepare() {
    plants = [];
    shown = 0;
    draw();
  },
  async read() {
    const wanted = shown + moreCount;
    const found: DeletedPlant[] = [];
    for await (const plant of store.listDeleted({ pageSize: Math.min(wanted + 1, maxPage) })) {
      found.push(plant);
      if (found.length > wanted) break;
    }
    return found;
  },
  draw(found) {
    plants = found;
    shown += moreCount;
    draw();
  },
  send: () => binDialog.load(),
});

function draw(): void {
  show('bin-form', plants.length > shown);
  drawEntries('bin-plants', plants.slice(0, shown), entry);
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
  const { current, fault } = await binDialog.run(() => restore(plant));
  if (current !== undefined) addPlants([current]);
  plants = plants.filter((other) => other !== plant);
  shown--;
  draw();
  return fault ?? sentence`Restored “${current?.name ?? ''}”.`; // with this id, another plant can have been deleted since
}
