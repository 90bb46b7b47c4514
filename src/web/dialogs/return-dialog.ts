/**
 * The dialog that puts the user's own plants back as they were at a time: choose it, see what would change, agree.
 */
import type { Return } from '../../client/client.ts';
import { textFields } from '../../client/types.ts';
import { store } from '../session/session.ts';
import { byId, joined, onPress, sentence, setText, type Text } from '../shared/dom.ts';
import { countOf, formatCount } from '../shared/format.ts';
import { whileBusy } from '../shared/form.ts';
import { importKey, recall } from '../shared/remember.ts';
import { offerUndo, toast } from '../shared/toast.ts';
import { reload } from '../table/plants.ts';
import { drawEntries, entryOf, MenuDialog } from './menu-dialog.ts';

type Step = Return['plants'][number];

const maxListed = 20;
const hourMs = 60 * 60 * 1_000;
const since = byId('return-since', HTMLInputElement);
const goButton = byId('return-do', HTMLButtonElement);
/** What happens to a plant, by outcome. Other outcomes are reasons why nothing does. */
const effects: Partial<Record<string, string>> = {
  restored: 'Back from the bin',
  deleted: 'To the bin',
  updated: 'Earlier name or tag',
};
const effectOf = ({ outcome }: Step) => effects[outcome] ?? 'Cannot be put back';

export const returnDialog: MenuDialog<Step[]> = new MenuDialog('return', {
  prepare() {
    const nowMs = Date.now();
    const importMs = Date.parse(recall(importKey, 'device') ?? '');
    const time = new Date(nowMs - importMs < 24 * hourMs ? importMs : nowMs - hourMs);
    const localMs = time.getTime() - time.getTimezoneOffset() * 60_000;
    since.value = new Date(localMs).toISOString().slice(0, 19);
    draw([]);
  },
  async read() {
    draw([]);
    return (await store.previewReturn(new Date(since.value).toISOString())).plants;
  },
  draw,
  send: () => whileBusy(byId('return-lists', HTMLElement), () => returnDialog.load()),
});

since.addEventListener('input', () => draw([])); // only what is shown can be done
onPress('return-do', () => whileBusy(goButton, () => returnDialog.form.run(goBack)));

async function goBack(): Promise<void> {
  const { plants, undoSince } = await store.returnToTime(new Date(since.value).toISOString());
  byId('return', HTMLDialogElement).close();
  reload();
  const done = `Went back: ${countOf(changedOf(plants), 'plant')} changed.`;
  if (undoSince === undefined || changedOf(plants) === 0) return void toast(done);
  offerUndo(done, async () => {
    const undone = await store.returnToTime(undoSince);
    reload();
    toast(`Undone: ${countOf(changedOf(undone.plants), 'plant')} changed.`);
  });
}

function draw(steps: readonly Step[]): void {
  // What was added is of less interest, and comes first.
  const listed = steps.slice(-maxListed).toReversed();
  drawEntries('return-plants', listed, (step) => entryOf(...textsOf(step)));
  const groups = [...Map.groupBy(steps.toReversed(), effectOf)];
  const texts = groups.map(([effect, { length }]) => `${effect}: ${formatCount(length)}`);
  setText('return-summary', texts.join(' · '));
  const more = steps.length - maxListed;
  setText('return-rest', more > 0 ? `and ${countOf(more, 'plant')} more` : '');
  goButton.hidden = changedOf(steps) === 0;
}

function changedOf(steps: readonly Step[]): number {
  return steps.filter(({ outcome }) => outcome in effects).length;
}

/** The plant, and what happens to it. */
function textsOf(step: Step): [name: Text, facts: Text[]] {
  const { outcome, now, before } = step;
  const shown = (plant: Step['now']) =>
    joined(
      textFields.flatMap((field) => plant?.[field] || []),
      ' · ',
    );
  if (outcome === 'updated') return [sentence`${shown(now)} → ${shown(before)}`, []];
  return [shown(before ?? now), [effectOf(step)]];
}
