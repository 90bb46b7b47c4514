/**
 * Compares the log of each store with its rows: each change found what the one before has left, and what the last one left
 * is there. What is older than the log is not expected, nor are changes by other programs.
 *
 * Memory grows with the log: by 8 bytes for a change of a plant, and more for deletions, users, shares and tokens.
 */
import { tokenId } from '../access/token.ts';
import { changeEvents, leftCrc, plantEvents } from '../log/change-log.ts';
import { plantOf } from '../plants/fields.ts';
import { copiedColumns, tables, type Archive, type Row, type Table } from './archive.ts';
import { digestOf } from './digest.ts';

/** Further faults are counted. */
const maxFaults = 100;

/** More than the clocks of processes differ. */
const clockMarginMs = 60 * 60 * 1_000;

/** Without `hasLog`, only rows are verified. The digest is that of `copy`. */
export async function verifyArchive(
  archive: Archive,
  hasLog = true,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<{ digest: string; changes: number; plants: number; faults: readonly string[] }> {
  const faults: string[] = [];
  const counts = { changes: 0, plants: 0 };
  let further = 0;
  const report = (fault: string) => {
    if (faults.length < maxFaults) faults.push(fault);
    else further++;
  };
  const stores = new Map<unknown, ReturnType<typeof openCheck>>();
  let [done, total] = [0, 0];
  for (const table of tables) total += await archive.count(table);
  const digest = await archive.snapshot((source) =>
    digestOf(source, (table, rows) => {
      for (const row of rows) {
        const check = stores.get(row[0]);
        // The rows have these columns, as `copiedColumns`.
        if (table === 'stores') stores.set(row[0], openCheck(row as StoreRow, report));
        else if (check === undefined) report(`${table} of a missing store, ${String(row[0])}`);
        else if (table !== 'changes') check.add(table, row);
        else if (hasLog) check.addChange(row as ChangeRow);
      }
      if (table === 'plants' || (table === 'changes' && hasLog)) counts[table] += rows.length;
      onProgress((done += rows.length), Math.max(done, total));
    }),
  );
  for (const check of stores.values()) check.end();
  if (further > 0) faults.push(`and ${further} more`);
  return { digest, ...counts, faults };
}

type Id = number | null;
type StoreRow = readonly [number, name: string, lastId: number, lastUser: number, last: number];
type PlantRow = readonly [number, id: number, owner: number, position: number, ...texts: string[]];
type Of = readonly [
  plant: Id,
  owner: Id,
  isRestorable: number,
  crc: Id,
  ...texts: (string | null)[],
];
type By = readonly [at: number, user: unknown, token: unknown, request: unknown];
type ChangeRow = readonly [number, position: number, previous: Id, event: number, ...By, ...Of];

/** Larger than any checksum: an older version has made the change, or its user was forgotten. */
const unknown = 2 ** 32;
/** In place of a checksum, after a deletion. */
const isGone = -1;

function openCheck(ofStore: StoreRow, reportFault: (fault: string) => void) {
  const [store, storeName, lastId, lastUser, last] = ofStore;
  /** Positions of the oldest change, and of the next one. */
  let [oldest, next] = [Infinity, NaN];
  /** What is there since then or later is in the log. */
  let loggedFromMs = Infinity;
  /**
   * By position, from the oldest: one more than the checksum of the plant that a change left, and 0 once a later change or
   * the plant itself has continued from it.
   */
  const left: number[] = [];
  /** Plants whose last change is a deletion, and whether they can be restored. */
  const deleted = new Map<number, boolean>();
  /** What the log says of users, shares and tokens: null if they have ended. */
  const expected = new Map<string, unknown>();
  const users = new Set<unknown>();

  const report = (fault: string) => reportFault(`store ${storeName}, ${fault}`);

  /** Returns false if the change at this position has left something else, or if another one has found that. */
  function isLeft(position: number, found: number): boolean {
    const there = left[position - oldest] ?? 0;
    if (there !== 0) left[position - oldest] = 0;
    return there === found || (there > 0 && found > 0 && Math.max(there, found) > unknown);
  }

  /** The value is null if the row gives no access. */
  function compare(key: string, value: unknown, sinceMs = -Infinity): void {
    const inLog = expected.get(key);
    if (inLog === undefined && value !== null && sinceMs >= loggedFromMs) {
      report(`${key}: not in the log`);
    } else if (inLog !== undefined && inLog !== value) report(`${key}: differs from the log`);
    expected.delete(key);
  }

  return {
    addChange([, position, previous, number, atMs, , , , plant, owner, ...rest]: ChangeRow): void {
      const [isRestorable, crc, ...texts] = rest;
      const [name, tag] = texts;
      const event = changeEvents[number] ?? '';
      const isNew = event === 'created' || event === 'restored';
      const inLog = (fault: string) => report(`plant ${plant}, position ${position}: ${fault}`);
      if (position > next) report(`position ${next}: the log has no such change`);
      if (oldest === Infinity) {
        oldest = position;
        loggedFromMs = position === 1 ? -Infinity : atMs + clockMarginMs;
      }
      next = position + 1;
      if (number < plantEvents.length !== (plant !== null)) inLog('the event does not fit it');
      if (plant === null) {
        const isEnd = /-(?:ended|revoked|removed)$/.test(event);
        const value = event === 'token-created' ? `${owner} ${tag}` : tag;
        expected.set(subjectOf(event, owner, name ?? ''), isEnd ? null : value);
        return;
      }
      if (isNew !== (owner === null) || (event === 'created') !== (previous === null)) {
        inLog('the event does not fit what was there before');
      }
      // Without a name, its user was forgotten.
      const before = name ? leftCrc(plantOf(plant, owner ?? 0, texts.map(String))) : unknown;
      const found = event === 'restored' ? isGone : 1 + before;
      if (previous !== null && previous >= oldest && !isLeft(previous, found)) {
        inLog(`it has not found what position ${previous} left`);
      }
      if (isNew || previous === 0) {
        if (deleted.get(plant)) inLog('an earlier deletion of it can still be restored');
        deleted.delete(plant);
      }
      const isListed = isRestorable === 1 || Boolean(name);
      if (event === 'deleted' && isListed) deleted.set(plant, isRestorable === 1);
      else if (isRestorable === 1) inLog('it can be restored, but it is no deletion');
      if (plant > lastId) inLog('the last id of the store is smaller');
      left[position - oldest] = event === 'deleted' ? isGone : 1 + (crc ?? unknown);
    },

    /** For all tables but the log. Users come before what belongs to them. */
    add(table: Table, row: Row): void {
      const of = (column: string) => row[copiedColumns[table].indexOf(column)];
      const user = of('owner') ?? of('user_id') ?? of('id');
      const key = `${table} ${String(user)}`;
      if (table === 'users') {
        users.add(user);
        compare(key, of('role'));
        if (Number(user) > lastUser) report(`${key}: the last user of the store is smaller`);
      } else if (table === 'shares') {
        compare(`${key} ${String(of('user_name'))}`, of('access'), Number(of('since')));
      } else if (table === 'tokens') {
        const id = tokenId(of('hash') as Uint8Array, store); // bytes in both engines
        const value = of('revoked_at') === null ? `${String(user)} ${String(of('scopes'))}` : null;
        compare(`tokens ${id}`, value, Number(of('created_at')));
      } else if (table === 'plants') {
        const [, id, owner, position, ...texts] = row as PlantRow;
        const isKept = position >= oldest; // or too old for the log, or 0 of another program
        if (isKept && !isLeft(position, 1 + leftCrc(plantOf(id, owner, texts)))) {
          report(`plant ${id}, position ${position}: the plant is not what this change left`);
        }
      }
      if (!users.has(user)) report(`${key}: the user is missing`);
    },

    /** Call it after all rows. */
    end(): void {
      if (next <= last || next > last + 1)
        report(`position ${last}: the log does not end here, but the store does`);
      left.forEach((there, at) => {
        if (there > 0)
          report(`position ${oldest + at}: the plant that this change left is missing`);
      });
      for (const [plant, isRestorable] of deleted) {
        if (!isRestorable) report(`plant ${plant}: its deletion cannot be restored`);
      }
      for (const [key, value] of expected) {
        // Tokens are deleted some time after their end, and webhooks with their users.
        const isKept = value !== null && /^(?:users|shares) /.test(key);
        if (isKept) report(`${key}: missing, but in the log`);
      }
    },
  };
}

/** What an event is about, in the words of `add`. */
function subjectOf(event: string, user: Id, name: string): string {
  if (/^(?:user|role)/.test(event)) return `users ${user}`;
  if (event.startsWith('share')) return `shares ${user} ${name}`;
  return event.startsWith('token') ? `tokens ${name}` : event;
}
