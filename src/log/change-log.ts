/**
 * The log of changes: who changed what and when, and what a plant was before. Each engine adds a change to the log in
 * the transaction that makes it, so that the log and the store always agree.
 *
 * A change to a plant has what was there before. What is there after it is what the next change to that plant found, or
 * the plant itself. So a create costs no second copy of its text, but only a checksum, which shows whether they still agree
 * (verify.ts).
 */
import { crc32 } from 'node:zlib';
import type { Identified, Identity, ReadAccess } from '../access/access.ts';
import { textValues, type TextField, type Texts } from '../plants/fields.ts';
import type { OwnedPlant, StoredPlant } from '../plants/plant-storage.ts';
import type { ScanQuery } from '../shared/scan.ts';

/** How a plant changed. Only operators move plants to another owner. */
export const plantEvents = ['created', 'updated', 'deleted', 'restored', 'moved'] as const;
export type PlantEvent = (typeof plantEvents)[number];
/**
 * How plants and the rest changed. `share-changed` has another access, and `role-changed` another role of a user. The log
 * stores the place of an event in this list: append others.
 */
export const changeEvents = [
  ...plantEvents,
  'shared',
  'share-changed',
  'share-ended',
  'token-created',
  'token-revoked',
  'user-created',
  'role-changed',
  'user-removed',
  'backup-restored',
  'webhook-created',
  'webhook-removed',
] as const;
export type ChangeEvent = (typeof changeEvents)[number];

/** How long changes are kept unless the operator decides otherwise: 30 days. */
export const defaultKeepChangesMs = 30 * 24 * 60 * 60 * 1_000;

/** Maximum number of changes in a history. */
export const maxHistory = 100;

/** Maximum number of changes in a step of the feed. With the largest plants, it takes about 1 ms on SQLite. */
export const maxFollowed = 120;

/** How many changes a step of their removal checks. It takes a few milliseconds. */
export const maxRemovedChanges = 500;

/** Earlier changes are too old: nothing shows them. `keepMs` as in `WriteSettings`. */
export function keptSince(keepMs: number | undefined): number {
  if (keepMs === undefined) return 0;
  return keepMs === 0 ? Number.MAX_SAFE_INTEGER : Date.now() - keepMs;
}

/** A change to add. */
export interface NewEntry extends Partial<Texts<string | undefined>> {
  event: ChangeEvent;
  plant?: number | undefined;
  /** The position of the last change to the plant before; undefined if the log has none. */
  previous?: number | undefined;
  /** This and the texts are what was there before, or which share, token or role. */
  owner?: number | undefined;
  /** The plant after the change. */
  left?: OwnedPlant | undefined;
}

/**
 * A checksum of what a change leaves of a plant, for `verify`. No text has a line break. A field that is added later is empty,
 * and so changes none.
 */
export function leftCrc(plant: OwnedPlant): number {
  return crc32([plant.id, plant.owner, ...textValues(plant)].join('\n').replace(/\n+$/, ''));
}

/** A change with its place. */
export interface LogEntry extends NewEntry {
  /** The changes of a store have consecutive positions, in the order of their commits. */
  position: number;
  /** Undefined for a command of the operator. */
  by?: Identified | undefined;
  request?: string | undefined;
}

/** Every position is smaller. SQLite has 42 bits for one (sqlite/dialect.ts). */
export const maxPosition = 2 ** 42 - 1;

/** A position that a client sends as a cursor; undefined if the text is none. */
export function parsePosition(text: string): number | undefined {
  const position = /^(0|[1-9]\d{0,12})$/.test(text) ? Number(text) : Infinity;
  return position <= maxPosition ? position : undefined;
}

/**
 * One change, as operators see it. The texts are those of the plant before the change. For a share, they are the other
 * user and the access; for a token, its id and scopes; for a role, no name and the new role; for a backup, its file; for a
 * webhook, its id and where it sends to.
 */
export interface LoggedChange extends Texts<string | undefined> {
  position: number;
  event: ChangeEvent;
  /** Since the Unix epoch, by the clock of the process that made the change. */
  atMs: number;
  /** Who made it, and with which token and request. Undefined for a command of the operator. */
  user: string | undefined;
  token: string | undefined;
  request: string | undefined;
  /** The id of the plant. */
  plant: number | undefined;
  /** Who owned the plant before. For a share, its owner; for a token, a role or a webhook, its user. */
  owner: string | undefined;
}

/** A change to a plant, as its readers see it. */
export type PlantChange = Pick<LoggedChange, 'event' | 'atMs' | 'user' | 'owner' | TextField>;

/** A change as the feed needs it (feed.ts), and a return to a time (differences.ts). */
export type FollowedChange = Omit<LoggedChange, 'owner' | 'token' | 'request'> & {
  /** As in `NewEntry`. */
  previous: number | undefined;
  /** The number of the user who owned the plant before; undefined if there was none. */
  ownerBefore: number | undefined;
  /** The plant as it is now. */
  now: StoredPlant | undefined;
};

/** A part of the log at one moment. */
export interface FeedStep {
  /** Differs between databases, and after a restore. */
  epoch: number;
  /** The position of the last change of the store. */
  last: number;
  /** The position at which the reader was last removed; 0 if never. A later user of the name is another person. */
  removedPosition: number;
  changes: readonly FollowedChange[];
}

/** A plant that can be restored, and its deletion. */
export interface DeletedPlant extends OwnedPlant {
  deletedAtMs: number;
  /** The number of the user. Undefined for a command of the operator. */
  deletedBy: number | undefined;
  position: number;
}

/** `after` is the position of a deletion: the page has only earlier ones. */
type BinQuery = ScanQuery<number>;

/** Every deletion is earlier. */
export const binStart = maxPosition;

export interface BinPage {
  plants: readonly DeletedPlant[];
  /** If more plants follow, the position of the last deletion of this page. */
  next: number | undefined;
}

export interface LogQuery {
  /** The name of the store. */
  store: string;
  /** Only changes by the user with this name, to this plant, or since this time. */
  user?: string | undefined;
  plant?: number | undefined;
  sinceMs?: number | undefined;
  /** Only changes after this position. */
  after?: number | undefined;
  /** Maximum number of changes to look at. Those that do not match are left out. */
  limit: number;
}

interface LogPage {
  changes: LoggedChange[];
  /** If more changes follow, the position of the last one that was looked at. */
  next: number | undefined;
}

/** The log of a storage (storage.ts). Reads leave out what is too old (`WriteSettings`), even if it was not removed yet. */
export interface ChangeLog {
  /**
   * The newest changes to a plant since it was created, newest first, up to `limit`. A plant that was deleted has a
   * history while the log has it. Undefined if the plant is out of reach.
   */
  history(
    caller: ReadAccess,
    plant: number,
    limit: number,
  ): Promise<readonly PlantChange[] | undefined>;

  /**
   * The plants that the caller can restore (`PlantStorage.restore`): the last change of each is its deletion, and its owner
   * was not removed since. They are in the order of their deletions, the newest first.
   *
   * It is a scan of all deletions of the store in the log, whoever owned the plants. Other requests run between its steps.
   */
  deleted(caller: ReadAccess, query: BinQuery): Promise<BinPage>;

  /** The position of the last change of a store; 0 if there is none. */
  position(store: number): Promise<number>;

  /** The same for several stores, with those that exist. */
  positions(stores: readonly number[]): Promise<ReadonlyMap<number, number>>;

  /**
   * The changes from a position on, that one included, with what their plants are now: a step of the feed (feed.ts). It
   * leaves out what is too old, but not the first change. Rejects with `changes-not-kept` if there is no log.
   */
  follow(by: Identity, from: number): Promise<FeedStep>;

  /**
   * For operators: the changes of a store in ascending order of their positions. Empty if there is no such store.
   */
  list(query: LogQuery): Promise<LogPage>;

  /**
   * Takes a step of the removal of changes from before `beforeMs`, in stores whose numbers are at least `store`. No
   * change is removed before an earlier one: a creation stays as long as what happened before with its id. Resolves to
   * the store to continue with, or to undefined at the end.
   */
  removeOld(beforeMs: number, store: number): Promise<number | undefined>;

  readClock(): Promise<ClockState>;
  /** A later `confirmedMs` stays as it is. */
  setClock(state: ClockState): Promise<void>;
}

/** What a database has of the clocks of its processes (retention.ts). */
export interface ClockState {
  /** The latest time at which the clock of a process was right. */
  confirmedMs: number;
  /** Since when, by its own time, a clock is ahead of it. */
  aheadSinceMs: number | undefined;
}
