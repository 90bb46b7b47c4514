/**
 * Shows what others add, change, delete or share while the tab is visible. The cursor of changes comes before the list, so
 * that no change is in neither of them. If the service keeps no changes, the page shows what it has read.
 */
import { PlantStoreError } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { pause } from '../../client/waiting.ts';
import { checkOpened } from '../dialogs/plant-dialog.ts';
import { leaving } from '../session/connection.ts';
import { can, follower, store } from '../session/session.ts';
import { sentence, type Text } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { announce } from '../shared/toast.ts';
import { checkEdited, edited } from './editor.ts';
import { rowFields } from './plant-list.ts';
import { isOwn, list, refreshPlants, showChanges, showView, view, type Changes } from './plants.ts';
import { highlight } from './table.ts';

/** How long a round lasts at least that fails, such as one of too many tabs: the page then asks once a round. */
const failedRoundMs = 3_000;
/** The same if the cursor has ended, because others have shared plants. */
const endedRoundMs = 300;
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
  while (!signal.aborted) {
    const startMs = performance.now();
    try {
      await followRound(signal);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PlantStoreError)) throw error;
      const hasEnded = isProblem(error, 'cursor-ended');
      if (hasEnded) cursor = undefined;
      else if (isFinal(error)) return;
      const roundMs = hasEnded ? endedRoundMs : failedRoundMs;
      await pause(startMs + roundMs - performance.now(), signal).catch(() => {}); // the loop ends
    }
  }
}

/** Whether the next request would fail too. */
function isFinal({ status }: PlantStoreError): boolean {
  return status >= 400 && status < 500 && ![401, 408, 429].includes(status);
}

/** Shows the changes since the cursor, and those that follow, until the rows have to be read again. */
async function followRound(signal: AbortSignal): Promise<void> {
  const [after, options] = [cursor, { fields: rowFields, signal }];
  // It responds at once. If it does not, the page shows that, and waits.
  const { value: first } = await store.changes({ ...options, after }).next();
  if (after === undefined) await refreshPlants();
  if (after === undefined) void checkEdited();
  await show(first);
  if (cursor === undefined) return;
  // A request that waits can fail without a reason to worry: proxies end it.
  for await (const batch of follower.changes({ ...options, after: cursor })) {
    await show(batch);
    await pause(batchPauseMs, signal);
    if (cursor === undefined) return;
  }
}

async function show({ changes, after }: Changes): Promise<void> {
  const isTooMuch = changes.length > Math.max(manyChanges, list?.count ?? 0);
  cursor = isTooMuch ? undefined : after;
  if (isTooMuch) return;
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
