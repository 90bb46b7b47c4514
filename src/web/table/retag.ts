/**
 * The dialog that gives all selected plants the same tag.
 */
import type { Plant, ResponseInfo } from '../../client/client.ts';
import { store } from '../session/session.ts';
import { byId, focusTable, sentence, setText } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { Form } from '../shared/form.ts';
import { offerUndo, toast } from '../shared/toast.ts';
import { forEach, whatOf } from './each.ts';
import { rowFields } from './plant-list.ts';
import { updatePlants } from './plants.ts';
import { selectedPlants } from './selection.ts';

/** A plant and the tag that it gets, if it has this entity tag: undefined for whatever it has. */
interface Retag extends Pick<Plant, 'id' | 'name' | 'tag'> {
  etag?: string | undefined;
}

const dialog = byId('retag', HTMLDialogElement);
const input = byId('retag-tag', HTMLInputElement);
const form = new Form('retag', async () => {
  dialog.close();
  focusTable();
  void retag(selectedPlants(), input.value);
});

export function openRetag(): void {
  const plants = selectedPlants();
  const [tag = '', ...others] = new Set(plants.map((plant) => plant.tag));
  input.value = others.length === 0 ? tag : '';
  form.clear();
  setText('retag-title', `Tag ${countOf(plants.length, 'plant')}`);
  dialog.showModal();
  input.select();
}

async function retag(plants: readonly Plant[], tag: string): Promise<void> {
  const { undo, isDone } = await setTags(plants.map(({ id, name }) => ({ id, name, tag })));
  if (undo.length === 0) return void (isDone && toast('These plants have this tag already.'));
  const text =
    tag === ''
      ? sentence`Removed the tag of ${whatOf(undo)}.`
      : sentence`Tagged ${whatOf(undo)} “${tag}”.`;
  offerUndo(text, async () => {
    const { undo: undone } = await setTags(undo);
    if (undone.length > 0) toast(sentence`${whatOf(undone)} got back the tags from before.`);
  });
}

/** Returns what undoes it, as long as nobody else changes the plants. */
async function setTags(wanted: readonly Retag[]): Promise<{ undo: Retag[]; isDone: boolean }> {
  const undo: Retag[] = [];
  const changed: Plant[] = [];
  const set = async ({ id, name, tag, ...known }: Retag) => {
    const read = async () => store.getWithETag(id, { fields: ['tag'] });
    const before = known.etag === undefined ? await read() : undefined;
    if (before?.plant.tag === tag) return undefined;
    let etag: string | undefined;
    const onResponse = ({ headers }: ResponseInfo) => (etag = headers.get('etag') ?? undefined);
    const options = { ifMatch: before?.etag ?? known.etag, fields: rowFields, onResponse };
    changed.push(await store.update(id, { tag }, options));
    undo.push({ id, name, tag: before?.plant.tag ?? '', etag });
    return undefined;
  };
  const showDone = () => updatePlants(...changed.splice(0));
  const isDone = await forEach(wanted, ['Tagging', 'tagged'], set, showDone);
  return { undo, isDone };
}
