/**
 * Compares the log of each store with its rows: each change found what the one before has left, and what the last one left
 * is there. What is older than the log is not expected, nor are changes by other programs.
 *
 * Memory grows with the log: by 8 bytes for a change of a plant, and more for deletions, users, shares and tokens.
 */
import { tokenId } from '../access/token.ts';
import { changeEvents, leftCrc, plantEvents } from '../log/change-log.ts';
import { plantOf } from '../plants/fields.ts';
import { tables, type Archive, type Row, type Table } from './archive.ts';
import { digestOf } from './digest.ts';

/** Further faults are only counted. */
const maxListedFaults = 100;

/** Without `hasLog`, only rows are verified. The digest is that of `copy`. */
export async function verifyArchive(
  archive: Archive,
  hasLog = true,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<{ digest: string; faults: readonly string[]; faultCount: number }> {
  const faults: string[] = [];
  let [faultCount, done, total] = [0, 0, 0];
  const report = (fault: string) => {
    if (faultCount++ < maxListedFaults) faults.push(fault);
  };
  const stores = new Map<Row[number] | undefined, StoreCheck>();
  for (const table of tables) total += await archive.count(table);
  const digest = await archive.snapshot((source) =>
    digestOf(source, (table, rows) => {
      for (const row of rows) {
        const [store] = row;
        if (table === 'stores') stores.set(store, new StoreCheck(report));
        if (!hasLog && table === 'changes') continue;
        const check = stores.get(store);
        if (check === undefined) report(`store ${String(store)}: it is missing, but has ${table}`);
        else (check[table] as (row: Row) => void).call(check, row); // its `copiedColumns`
      }
      onProgress((done += rows.length), Math.max(done, total));
    }),
  );
  for (const store of stores.values()) store.end();
  return { digest, faults, faultCount };
}

/** Larger than any checksum: an older version has made the change, or its user was forgotten. */
const unknown = 2 ** 32;

type Id = number | null;
type Who = readonly [at: unknown, user: unknown, token: unknown, request: unknown];
type What = readonly [
  plant: Id,
  owner: Id,
  isRestorable: number,
  crc: Id,
  ...texts: (string | null)[],
];
type ChangeRow = readonly [number, position: number, previous: Id, event: number, ...Who, ...What];

/** Each table has a method for its rows. */
class StoreCheck implements Record<Table, (row: never) => void> {
  readonly #report: (fault: string) => void;
  #name = '';
  #lastId = 0;
  #lastUser = 0;
  #last = 0;
  #oldest = Infinity;
  #next: number | undefined;
  /**
   * By position: one more than the checksum of the plant that a change left, negative if the plant was deleted, and 0 if a later
   * change or the plant itself has continued from it.
   */
  readonly #left: number[] = [];
  /** Plants whose last change is a deletion, and whether they can be restored. */
  readonly #deleted = new Map<number, boolean>();
  /** What the log says of users, shares and tokens: null if they have ended. */
  readonly #expected = new Map<string, string | null>();
  readonly #users = new Set<number>();

  constructor(report: (fault: string) => void) {
    this.#report = (fault) => report(`store ${this.#name}, ${fault}`);
  }

  stores(row: readonly [number, name: string, lastId: number, lastUser: number, last: number]) {
    [, this.#name, this.#lastId, this.#lastUser, this.#last] = row;
  }

  changes([, position, previous, number, , , , , plant, owner, ...rest]: ChangeRow) {
    const [isRestorable, crc, ...texts] = rest;
    const [name, tag] = texts;
    const event = changeEvents[number] ?? '';
    this.#oldest = Math.min(this.#oldest, position);
    this.#next ??= position;
    if (position !== this.#next) this.#report(`position ${this.#next}: the log has no such change`);
    this.#next = position + 1;
    const report = (fault: string) =>
      this.#report(`plant ${plant}, position ${position}: ${fault}`);
    const isNew = event === 'created' || event === 'restored';
    const isPossible =
      plant === null
        ? !plantEvents.some((one) => one === event)
        : plantEvents.some((one) => one === event) &&
          isNew === (owner === null) &&
          (event === 'created') === (previous === null);
    if (!isPossible) report('its event does not fit what was there before');
    if (plant === null) {
      const isEnd = /-(?:ended|revoked|removed)$/.test(event);
      this.#expected.set(subjectOf(event, owner, name), isEnd ? null : (tag ?? null));
      return;
    }
    // Without a name, its user was forgotten.
    const before = name ? leftCrc(plantOf(plant, owner ?? 0, texts.map(String))) : unknown;
    if (previous !== null && previous >= this.#oldest) {
      const found = event === 'restored' ? -1 - (crc ?? unknown) : 1 + before;
      if (!this.#continue(previous, found))
        report(`it has not found what position ${previous} left`);
    }
    if (isNew || previous === 0) {
      if (this.#deleted.get(plant)) report('an earlier deletion of it can still be restored');
      this.#deleted.delete(plant);
    }
    if (event === 'deleted' && name) this.#deleted.set(plant, isRestorable === 1);
    else if (isRestorable === 1) report('it can be restored, but it is no deletion');
    if (plant > this.#lastId) report('the last id of the store is smaller');
    this.#left[position] = event === 'deleted' ? -1 - before : 1 + (crc ?? unknown);
  }

  users([, id, , role, , removedAt]: readonly [number, number, string, string, Id, number]) {
    this.#users.add(id);
    if (id > this.#lastUser) this.#report(`user ${id}: the last user of the store is smaller`);
    this.#compare(`user ${id}`, role, id, removedAt);
  }

  plants([, id, owner, position, ...texts]: readonly [
    number,
    number,
    number,
    number,
    ...string[],
  ]) {
    this.#compare(`plant ${id}`, null, owner, position);
    if (position < this.#oldest) return; // too old for the log, or 0 of another program
    if (this.#continue(position, 1 + leftCrc(plantOf(id, owner, texts)))) return;
    this.#report(`plant ${id}, position ${position}: the plant is not what this change left`);
  }

  shares([, owner, name, access]: readonly [number, number, string, string]) {
    this.#compare(subjectOf('shared', owner, name), access, owner);
  }

  tokens([store, hash, user, scopes, , , , revokedAt]: TokenRow) {
    const value = revokedAt === null ? scopes : null;
    this.#compare(subjectOf('token-created', user, tokenId(hash, store)), value, user);
  }

  idempotency_keys([, , user, , plant, position]: readonly [
    number,
    string,
    number,
    string,
    number,
    number,
  ]) {
    this.#compare(`key of plant ${plant}`, null, user, position);
  }

  webhooks([, user, id, , , sent]: readonly [number, number, string, number, Id, number]) {
    this.#compare(`webhook ${id}`, null, user, sent);
  }

  /** Returns false if the change at this position has left something else, or if another one has found that. */
  #continue(position: number, found: number): boolean {
    const left = this.#left[position] ?? 0;
    this.#left[position] = 0;
    const isKnown = Math.abs(left) <= unknown && Math.abs(found) <= unknown;
    return isKnown ? left === found : Math.sign(left) === Math.sign(found);
  }

  /** Compares a row with the log, its user and its store. */
  #compare(subject: string, value: string | null, user: number, position = 0): void {
    const expected = this.#expected.get(subject);
    this.#expected.delete(subject);
    if (expected !== undefined && expected !== value)
      this.#report(`${subject}: differs from the log`);
    if (!this.#users.has(user)) this.#report(`${subject}: its user ${user} is missing`);
    if (position > this.#last) this.#report(`${subject}: the store is before position ${position}`);
  }

  /** Call it after all rows. */
  end(): void {
    if (this.#next !== undefined && this.#next !== this.#last + 1) {
      this.#report(`position ${this.#last}: the log does not end here, but the store does`);
    }
    this.#left.forEach((left, position) => {
      if (left > 0)
        this.#report(`position ${position}: the plant that this change left is missing`);
    });
    for (const [plant, isRestorable] of this.#deleted) {
      if (!isRestorable) this.#report(`plant ${plant}: its deletion cannot be restored`);
    }
    for (const [subject, value] of this.#expected) {
      // Tokens are deleted some time after their end, and webhooks with their users.
      const isKept = value !== null && /^(?:share|user)/.test(subject);
      if (isKept) this.#report(`${subject}: it is missing`);
    }
  }
}

type TokenRow = readonly [number, Uint8Array, number, string, ...(string | Id)[]];

/** What an event is about, unless that is a plant. */
function subjectOf(event: string, user: Id, name: string | null = null): string {
  if (event.startsWith('share')) return `share of user ${user} with ${name}`;
  if (event.startsWith('token')) return `token ${name}`;
  return event.startsWith('user') || event === 'role-changed' ? `user ${user}` : event;
}
