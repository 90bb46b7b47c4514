/**
 * Shows what others add, change, delete or share while the tab is visible. The cursor of changes comes before the list, so
 * that no change is in neither of them. If the service keeps no changes, the page shows what it has read.
 */
import { PlantStoreError } from '../../client/client.ts';
import { followAnew } from '../../client/follow.ts';
import { pause } from '../../client/waiting.ts';
import { binDialog } from '../dialogs/bin-dialog.ts';
import { checkOpened } from '../dialogs/plant-dialog.ts';
import { leaving } from '../session/connection.ts';
import { can, follower, store } from '../session/session.ts';
import { sentence, type Text } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { announce } from '../shared/toast.ts';
import { checkEdited, edited } from './editor.ts';
import { rowFields } from './plant-list.ts';
import { isOwn, list, refreshPlants, showChanges, showView, view, type Change } from './plants.ts';
import { highlight } from './table.ts';

/** With these, the next request would fail too. */
const lastingStatuses: readonly number[] = [400, 403, 404];
/** How long the page waits after an error that need not last, such as a bug in the service. */
const failedMs = 3_000;
/** During an import, the page asks this often for the next changes, or all rows, and not after each row. */
const batchPauseMs = 200;
/** With more changes than this, and than rows, it is faster to read the rows again. */
const manyChanges = 500;
/** Screen readers announce what others do at most once in this time. */
const announceMs = 2_000;

/** Where the next changes begin. Undefined if the rows have to be read again. */
let cursor: string | undefined;
let canFollow = false;
/** Ends the request that waits. */
let visible = new AbortController();
/** What screen readers have not announced yet. */
let untold: Text[] = [];

leaving.signal.addEventListener('abort', () => visible.abort());
document.addEventListener('visibilitychange', followIfVisible);

/** Shows the view of the address, and follows the store. */
export async function openLive(): Promise<void> {
  visible.abort();
  canFollow = can('plants:read');
  try {
    if (canFollow) cursor = (await store.changes().next()).value.after;
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    canFollow = false;
  }
  showView();
  followIfVisible();
}

function followIfVisible(): void {
  visible.abort();
  visible = new AbortController();
  if (canFollow && document.visibilityState === 'visible') void follow(visible.signal);
}

async function follow(signal: AbortSignal): Promise<void> {
  try {
    for (;;) await followFrom(cursor, signal);
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof PlantStoreError)) throw error;
    if (lastingStatuses.includes(error.status)) return;
    await pause(failedMs, signal).then(followIfVisible, () => {});
  }
}

/** Shows the changes after the cursor. Ends if there are so many that the rows have to be read again, with a new cursor. */
async function followFrom(after: string | undefined, signal: AbortSignal): Promise<void> {
  let isMissing = after === undefined;
  for await (const batch of followAnew(follower, { after, fields: rowFields, signal })) {
    if (isMissing || batch.reset !== undefined) {
      await refreshPlants();
      void checkEdited();
    }
    isMissing = false;
    const isTooMuch = batch.changes.length > Math.max(manyChanges, list?.count ?? 0);
    if (!isTooMuch) await show(batch.changes);
    await binDialog.refresh();
    cursor = isTooMuch ? undefined : batch.after;
    await pause(batchPauseMs, signal);
    if (isTooMuch) return;
  }
}

async function show(changes: readonly Change[]): Promise<void> {
  const news = showChanges(changes);
  const ofOthers = news.filter(({ change }) => !isOwn(change));
  highlight(ofOthers.map(({ change }) => change.id));
  tell(ofOthers.map(textOf));
  const ids = new Set(changes.map(({ id }) => id));
  void checkOpened(ids);
  if (edited !== undefined && ids.has(edited.id)) void checkEdited();
  if (view.q !== undefined && news.length > 0) await refreshPlants(); // only the service can search
}

function textOf({ change, before }: ReturnType<typeof showChanges>[number]): Text {
  const { user = 'The operator', event, plant = before } = change;
  return sentence(['', ` ${event} “`, '”.'], user, plant?.name ?? '');
}

function tell(texts: readonly Text[]): void {
  if (texts.length > 0 && untold.length === 0) setTimeout(announceUntold, announceMs);
  untold.push(...texts);
}

function announceUntold(): void {
  const [text = ''] = untold;
  const all = `Others have changed ${countOf(untold.length, 'plant')}.`;
  announce(untold.length === 1 ? text : all, 'live-others');
  untold = [];
}
