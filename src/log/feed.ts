/**
 * The feed: what a reader can see of the changes after a cursor. It is a range of the log, and nothing is stored for it.
 *
 * The cursor has all that shows whether the range is complete for its reader: which database, the position and time of the
 * last change before it, and who reads. A database that was set back has another change at the position, and the log has
 * each change of what the reader can access. In both cases the reader has to begin again, without a cursor.
 */
import { everyone, reaches, type Reach } from '../access/access.ts';
import { textsOf } from '../plants/fields.ts';
import type { OwnedPlant } from '../plants/plant-storage.ts';
import { fixedProblem, Problem } from '../problem.ts';
import { formatTimestamp } from '../shared/timestamp.ts';
import {
  parsePosition,
  plantEvents,
  type ChangeLog,
  type FeedStep,
  type FollowedChange,
  type PlantEvent,
} from './change-log.ts';

/** Changes that one page looks at: the reader may see none of them. */
const maxLookedAt = 10_000;

/** Who follows the changes, and what they can read now. */
export interface Reader {
  readonly store: number;
  readonly user: number;
  readonly userName: string;
  readonly read: Reach;
}

/** What a reader sees of the last change to a plant in a page. */
export interface FeedChange {
  id: number;
  /** `deleted` if the reader cannot see the plant any more, for any reason. */
  event: PlantEvent;
  atMs: number;
  /** Undefined for a command of the operator, and if the plant has left the reader's reach without a deletion. */
  user: string | undefined;
  /** As it is now; undefined if it is gone. */
  plant: OwnedPlant | undefined;
}

export interface FeedPage {
  /** In the order of the commits, each plant once. */
  changes: readonly FeedChange[];
  /** For the next page. */
  cursor: string;
  /** That of the last change which the page has considered. */
  position: number;
  /** Whether the store had no change after it. */
  isEnd: boolean;
}

/**
 * An item of `GET /changes`, and of a message to a webhook. `plantAsJson` shows the plant, by default with the fields of a
 * response whose request names none.
 */
export function changeJson(
  { id, event, atMs, user, plant }: FeedChange,
  plantAsJson = (shown: OwnedPlant) => JSON.stringify(textsOf(shown)),
): string {
  const change = JSON.stringify({ id, event, at: formatTimestamp(atMs), user });
  return plant === undefined ? change : `${change.slice(0, -1)},"plant":${plantAsJson(plant)}}`;
}

interface Cursor {
  epoch: number;
  position: number;
  /** The time of the change at the position; 0 if the log had none. */
  atMs: number;
  /** Those who see all plants of the store can use each other's cursors. */
  reader: string;
}

/** Why a cursor cannot be continued. */
export const cursorEnds = {
  expired: 'The service does not keep all changes after this cursor any more.',
  restored: 'The cursor is from another database, or from before a restore of this one.',
  'access-changed': 'What you can access has changed since this cursor.',
};

function cursorEnded(reason: keyof typeof cursorEnds): Problem {
  const detail = `${cursorEnds[reason]} Begin again: get a new cursor from /changes, then list the plants.`;
  return new Problem('cursor-ended', detail, { members: { reason } });
}

export const changesNotKept = fixedProblem(
  'changes-not-kept',
  'This service keeps no changes, so there are none to follow. List the plants instead.',
);

const cursorForm = /^([0-9a-z]{1,11})\.(\d{1,13})\.([0-9a-z]{1,11})\.(all|\d{1,16})$/;

/** Undefined if the text is no cursor. */
export function parseCursor(text: string): Cursor | undefined {
  const [, epoch = '', digits = '', at = '', reader = ''] = cursorForm.exec(text) ?? [];
  const position = parsePosition(digits);
  if (position === undefined) return undefined;
  return { epoch: parseInt(epoch, 36), position, atMs: parseInt(at, 36), reader };
}

function formatCursor({ epoch, position, atMs, reader }: Cursor): string {
  return [epoch.toString(36), position, atMs.toString(36), reader].join('.');
}

/**
 * The next changes after the cursor, up to `limit`; fewer, or none, if the reader cannot see most of them. Without a
 * cursor, the page is empty and its cursor that of now. Rejects with `cursor-ended` or `changes-not-kept`. `assertWanted`
 * as in `ScanQuery`.
 */
export async function readFeed(
  log: ChangeLog,
  reader: Reader,
  after: string | undefined,
  limit: number,
  assertWanted = () => {},
): Promise<FeedPage> {
  const key = reader.read === 'all' ? 'all' : String(reader.user);
  const start = after === undefined ? undefined : parseCursor(after);
  if (start === undefined) return begin(log, reader, key);
  const found = new Map<number, FeedChange>();
  let cursor = start;
  for (let lookedAt = 0; ;) {
    assertWanted();
    const step = await log.follow(reader, cursor.position);
    const following = changesAfter(cursor, step, key);
    for (const change of following) {
      if (changesAccess(change, reader)) throw cursorEnded('access-changed');
      const { position, atMs } = change;
      cursor = { ...start, position, atMs };
      const seen = seenBy(reader, change);
      if (seen === undefined) continue;
      found.delete(seen.id); // each plant has the place of its last change
      found.set(seen.id, seen);
      if (found.size === limit) break;
    }
    lookedAt += following.length;
    const { position } = cursor;
    const isEnd = position >= step.last;
    if (isEnd || found.size === limit || lookedAt >= maxLookedAt) {
      return { changes: [...found.values()], cursor: formatCursor(cursor), position, isEnd };
    }
  }
}

async function begin(log: ChangeLog, reader: Reader, key: string): Promise<FeedPage> {
  const position = await log.position(reader.store);
  const { epoch, changes } = await log.follow(reader, position);
  const atMs = changes[0]?.position === position ? changes[0].atMs : 0;
  const cursor = formatCursor({ epoch, position, atMs, reader: key });
  return { changes: [], cursor, position, isEnd: true };
}

/** The changes after the cursor without a gap. Throws `cursor-ended` if the log lacks some, or is not that of the cursor. */
function changesAfter(
  { epoch, position, atMs, reader }: Cursor,
  { epoch: epochNow, last, removedPosition, changes }: FeedStep,
  key: string,
): readonly FollowedChange[] {
  const [first] = changes;
  const isFirstKnown = first?.position === position; // after a long time, the log lacks it
  // First, because receipts from before a restore are worthless, whatever else has changed.
  if (epochNow !== epoch || last < position) throw cursorEnded('restored');
  if (reader !== key || position < removedPosition) throw cursorEnded('access-changed');
  const following = isFirstKnown ? changes.slice(1) : changes;
  const isComplete = following.every((change, at) => change.position === position + 1 + at);
  if (!isComplete || (following.length === 0 && last > position)) throw cursorEnded('expired');
  if (isFirstKnown && atMs !== 0 && first.atMs !== atMs) throw cursorEnded('restored');
  return following;
}

/** A share names the user who receives it. Who sees all plants does so without shares. */
function changesAccess(
  { event, name, ownerBefore }: FollowedChange,
  { read, user, userName }: Reader,
): boolean {
  if (event === 'role-changed') return ownerBefore === user; // and maybe back again
  const isShare = event === 'shared' || event === 'share-changed' || event === 'share-ended';
  const isReceived = name === userName || (name === everyone && ownerBefore !== user);
  return isShare && isReceived && read !== 'all';
}

/** Undefined if the reader sees nothing of the change. */
function seenBy(
  { read }: Reader,
  { event: logged, atMs, user, plant: id, ownerBefore: owner, now: plant }: FollowedChange,
): FeedChange | undefined {
  const event = plantEvents.find((each) => each === logged);
  if (id === undefined || event === undefined) return undefined;
  if (plant !== undefined && reaches(read, plant.owner)) {
    // It was deleted, but is back: a later change has brought it.
    return { id, event: event === 'deleted' ? 'restored' : event, atMs, user, plant };
  }
  if (owner === undefined || !reaches(read, owner)) return undefined; // a later change shows that it is gone
  return {
    id,
    event: 'deleted',
    atMs,
    user: event === 'deleted' ? user : undefined,
    plant: undefined,
  };
}
