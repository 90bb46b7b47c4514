/**
 * Opens the plant of a link, such as `#plant=40`.
 */
import { can, info } from '../session/session.ts';
import { byId, hashParameter, withoutParameter } from '../shared/dom.ts';
import { toast } from '../shared/toast.ts';
import { readPlant } from '../table/plants.ts';
import { openPlant } from './plant-dialog.ts';

/** The link whose plant is open, or was. */
let opened: string | undefined;

addEventListener('hashchange', () => void openLinkedPlant());
// A reload opens the plant again, unless the user has closed it.
byId('plant', HTMLDialogElement).addEventListener('close', () => {
  if (hashParameter('plant') === opened) withoutParameter('plant');
});

export async function openLinkedPlant(): Promise<void> {
  const linked = hashParameter('plant');
  if (linked === undefined || !can('plants:read')) return;
  const id = Number(linked);
  const plant = Number.isSafeInteger(id) && id > 0 ? await readPlant(id) : undefined;
  if (hashParameter('plant') !== linked) return; // another link came meanwhile
  opened = linked;
  if (plant !== undefined) return openPlant(plant);
  withoutParameter('plant');
  const isShared = info?.role !== 'manager';
  toast(
    `There is no plant with the id ${linked}${isShared ? ', or it is not shared with you' : ''}.`,
  );
}
