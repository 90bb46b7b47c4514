/**
 * The changes to the plants of one store in a transaction, and the outcome of each change.
 */
import { reaches, type Caller, type Reach } from '../access.ts';
import {
  byOf,
  type Change,
  type ChangeKind,
  type ChangeOf,
  type ChangeResults,
} from '../changes.ts';
import { maxId } from '../ids.ts';
import { defect, outcomeUnknown, Problem } from '../problem.ts';
import type { Quotas } from '../quota.ts';
import { changeStatements, type ChangeStatement, type GroupedChange } from './change-statements.ts';
import { prepared, type Connection, type Row } from './connection.ts';
import { callerNow, findAgain } from './grants.ts';
import { NumberedCreates } from './numbered-creates.ts';
import { settled } from './settled.ts';

export const groupSql = {
  // Sent before the changes, because it locks the row of the store: groups of several replicas are serialized. It finds
  // no row if the grants have changed since the callers were identified. Then the group changes nothing.
  begin: prepared<readonly [lastId: number, version: number]>(
    'begin_group',
    `
      UPDATE plant_store.stores
      SET last_id = least(greatest(last_id, $2), ${maxId}) + $3, version = version + 1, writer = $4
      WHERE store = $1 AND grants = $5
      RETURNING last_id - $3 AS last_id, version`,
  ),
  lock: prepared<readonly [lastId: number, version: number, writer: string]>(
    'lock_group',
    `
      SELECT last_id, version, writer FROM plant_store.stores WHERE store = $1 AND grants = $2 FOR UPDATE`,
  ),
  lockToCheck: prepared<readonly [grants: number]>(
    'lock_group_to_check',
    'SELECT grants FROM plant_store.stores WHERE store = $1 FOR UPDATE',
  ),
  // FOR UPDATE, to wait until a group in progress has ended.
  lastGroup: prepared<readonly [lastId: number, version: number, writer: string]>(
    'last_group',
    `
      SELECT last_id - $2 AS last_id, version, writer
      FROM plant_store.stores WHERE store = $1 FOR UPDATE`,
  ),
};

/** The result of a change, or why it was refused. */
export type Outcome = ChangeResults[ChangeKind] | Problem;

export interface QueuedChange {
  /** The sequence number of the write (pending.ts). */
  number: number;
  change: Change;
  /** When it was queued. */
  sinceMs: number;
}

export interface GroupOptions {
  /** Undefined if there are none. */
  quotas: Quotas | undefined;
  isCitus: boolean;
  /** Whether the store is known to have had the largest id. */
  isFull: boolean;
  /** Whether the grants of the store have changed since callers were identified. */
  mustCheck: boolean;
}

export class Group {
  readonly store: number;
  /** In the order of arrival. */
  readonly queued: readonly QueuedChange[];
  /** Whether check() must succeed first. */
  readonly mustCheck: boolean;
  /** Assigned ids are above `lastId`; `version` is that of this group. Undefined until the server returns them. */
  begun: { lastId: number; version: number } | undefined;
  /** Whether it has changed nothing, because callers must be identified again. */
  isStale = false;
  readonly #options: GroupOptions;
  #isStoreMissing = false;
  /** The version of the grants with which the callers of all changes were identified. */
  #grants: number;
  /** Why callers must not make their changes, by sequence number. */
  readonly #refused = new Map<number, Problem>();
  #largestId = 0;
  /** The changes for which the server assigns the id. */
  #assigned: readonly QueuedChange[] = [];
  #parts: readonly Part<ChangeKind>[] = [];
  /** Undefined if the server assigns the ids: the creates are among `#parts`. */
  #numbered: NumberedCreates | undefined;

  /** The changes are in the order of arrival, at least one. No two of them have the same id. */
  constructor(store: number, queued: readonly QueuedChange[], options: GroupOptions) {
    this.store = store;
    this.queued = queued;
    this.#options = options;
    const [version = 0, ...others] = new Set(queued.map(({ change }) => byOf(change)[0]));
    this.#grants = version;
    this.mustCheck = options.mustCheck || others.length > 0; // no version comes twice
    this.#prepare(queued);
  }

  #prepare(queued: readonly QueuedChange[]): void {
    const { quotas, isCitus, isFull } = this.#options;
    this.#numbered = undefined;
    let changes = queued;
    if (quotas !== undefined || isCitus || isFull) {
      const creates = new Map(
        queued.flatMap(({ number, change }) => (isCreate(change) ? [[number, change]] : [])),
      );
      // The number of plants in the store is carried over by groups that only delete, too.
      if (creates.size > 0 || quotas?.perStore !== undefined)
        this.#numbered = new NumberedCreates(this.store, creates, this.#options);
      changes = queued.filter(({ change }) => !isCreate(change));
    }
    const isAssigned = ([, , , id]: Change) => id === undefined;
    this.#assigned = changes.filter(({ change }) => isAssigned(change));
    const ids = changes.map(({ change: [kind, , , id = 0] }) => (kind === 'create' ? id : 0));
    this.#largestId = Math.max(0, ...ids);
    let idsLeft = this.assignedCount;
    const grouped = changes.map(({ number, change }) => {
      return { number, change, idsAfter: isAssigned(change) ? --idsLeft : 0 };
    });
    const kindNames = Object.keys(changeStatements) as ChangeKind[]; // it has no other keys
    this.#parts = kindNames.map((kind) => partOf(kind, grouped));
  }

  /** When the first of its changes was queued. */
  get sinceMs(): number {
    return this.queued[0]?.sinceMs ?? Number.NaN;
  }

  /** Number of changes for which the server assigns the id. */
  get assignedCount(): number {
    return this.#assigned.length;
  }

  /** The creates that no number was left for, if the transaction was committed. They have changed nothing. */
  get unassigned(): readonly QueuedChange[] {
    return this.begun === undefined ? [] : this.#assigned.slice(maxId - this.begun.lastId);
  }

  /** Whether lock() must succeed before change(). */
  get isInTwoSteps(): boolean {
    return this.#numbered !== undefined;
  }

  /** For another attempt. */
  reset(): void {
    this.begun = undefined;
    this.isStale = false;
    this.#isStoreMissing = false;
  }

  /** Locks the store and identifies all callers again. Changes of tokens that have ended are refused. */
  async check(connection: Connection): Promise<void> {
    const locking = connection.query(groupSql.lockToCheck, [this.store]);
    const identifying = new Map<string, Promise<Row[]>>();
    for (const { change } of this.queued) {
      const by = byOf(change);
      const [, tokenHash] = by;
      if (!identifying.has(tokenHash))
        identifying.set(tokenHash, connection.query(...findAgain(this.store, by)));
    }
    const [[row], ...found] = await settled([locking, ...identifying.values()]);
    this.#isStoreMissing = row === undefined;
    this.#grants = row?.[0] ?? 0;
    const rowsOf = new Map([...identifying.keys()].map((key, at) => [key, found[at] ?? []]));
    this.#refused.clear();
    const allowed = this.queued.flatMap((queued) => {
      const by = byOf(queued.change);
      const caller = callerNow(this.store, by, rowsOf.get(by[1]) ?? []);
      if (!(caller instanceof Problem)) return { ...queued, change: within(caller, queued.change) };
      this.#refused.set(queued.number, caller);
      return [];
    });
    this.#prepare(allowed);
  }

  /**
   * The first of two steps: locks the store, deletes, and finds out what the ids and quotas depend on. `attemptId` is
   * stored with the version and must be unique: if it is found there, the transaction was committed.
   */
  async lock(connection: Connection, attemptId: string): Promise<void> {
    const numbered = this.#numbered;
    if (numbered === undefined) return;
    const { hasQuotas, largestId, assignedCount } = numbered;
    const ids = [largestId, assignedCount, attemptId];
    const locked = hasQuotas
      ? connection.query(groupSql.lock, [this.store, this.#grants])
      : connection.query(groupSql.begin, [this.store, ...ids, this.#grants]);
    const changed = this.#sendParts(connection);
    const [[row]] = await settled([locked, numbered.check(connection), ...changed]);
    this.isStale = row === undefined && !this.#isStoreMissing;
    if (row === undefined) return;
    const [lastId, version, lastWriter = ''] = row;
    this.begun = { lastId, version: hasQuotas ? version + 1 : version };
    await numbered.drawIds(connection, lastId);
    const before = plantsIn(lastWriter);
    const deleted = this.#parts.reduce((sum, part) => sum + part.changedCount, 0);
    await numbered.countStore(connection, before === undefined ? undefined : before - deleted);
  }

  /** The second step, or the only one. It waits for no response before everything is sent. */
  async change(connection: Connection, attemptId: string): Promise<void> {
    const numbered = this.#numbered;
    if (numbered === undefined) {
      const begun = this.#begin(connection, attemptId, this.#largestId);
      await settled([begun, ...this.#sendParts(connection)]);
      return;
    }
    if (this.begun === undefined) return;
    const largestId = numbered.decide(Math.min(this.begun.lastId, maxId));
    const writer = writerOf(attemptId, numbered.storePlants);
    const begun = numbered.hasQuotas ? this.#begin(connection, writer, largestId) : undefined;
    await settled([begun ?? Promise.resolve(), numbered.send(connection, this.#grants)]);
  }

  /** The outcome of each change but `unassigned`, by its sequence number, if the transaction was committed. */
  *outcomes(): Iterable<readonly [number: number, Outcome]> {
    yield* this.#refused;
    if (this.begun === undefined) {
      const problem = this.#isStoreMissing
        ? defect(new Error(`there is no store ${this.store}`))
        : outcomeUnknown(new Error('another group followed after the response was lost'));
      for (const { number } of this.queued) yield [number, problem];
      return;
    }
    const { lastId } = this.begun;
    // In parentheses, because sums above the largest id are not exact.
    const assignedId = (idsAfter: number) => lastId + (this.assignedCount - idsAfter);
    for (const part of this.#parts) yield* part.outcomes(assignedId);
    if (this.#numbered !== undefined) yield* this.#numbered.outcomes();
  }

  #sendParts(connection: Connection): Promise<void>[] {
    return this.#parts.map((part) => part.send(connection, this.store, this.#grants));
  }

  async #begin(connection: Connection, writer: string, largestId: number): Promise<void> {
    const values = [this.store, largestId, this.assignedCount, writer, this.#grants];
    const [row] = await connection.query(groupSql.begin, values);
    this.isStale = row === undefined && !this.#isStoreMissing;
    this.begun = row && { lastId: row[0], version: row[1] };
  }
}

/**
 * What a group stores as its writer. With a quota of the store, that includes how many plants the store then has, so that
 * the next group need not count them. A group without that quota leaves it out.
 */
function writerOf(attemptId: string, plants: number | undefined): string {
  return plants === undefined ? attemptId : `${attemptId}${plantsMark}${plants}`;
}

const plantsMark = ' plants=';

function plantsIn(writer: string): number | undefined {
  const [, plants] = writer.split(plantsMark);
  return plants === undefined ? undefined : Number(plants);
}

/** Whether the writer in the row of the store is this attempt. */
export function isWriter(writer: string, attemptId: string): boolean {
  return writer.split(plantsMark)[0] === attemptId;
}

/** The change with the part of its reach that its caller still has. */
function within({ write }: Caller, change: Change): Change {
  if (change[0] === 'create') return change;
  const [kind, store, reach, id, by] = change;
  return [kind, store, intersection(reach, write), id, by];
}

function intersection(reach: Reach, other: Reach): Reach {
  return reach === 'all' ? other : reach.filter((owner) => reaches(other, owner));
}

function isCreate(change: Change): change is ChangeOf<'create'> {
  return change[0] === 'create';
}

/** The changes of one kind. */
class Part<K extends ChangeKind> {
  readonly #statement: ChangeStatement<K>;
  readonly #changes: readonly GroupedChange<K>[];
  /** The ids that the server returned; undefined before its response. */
  #changed: ReadonlySet<number> | undefined;

  constructor(statement: ChangeStatement<K>, changes: readonly GroupedChange<K>[]) {
    this.#statement = statement;
    this.#changes = changes;
  }

  /** How many plants the server has changed; 0 before its response. */
  get changedCount(): number {
    return this.#changed?.size ?? 0;
  }

  async send(connection: Connection, store: number, grants: number): Promise<void> {
    this.#changed = undefined;
    if (this.#changes.length === 0) return;
    const { statement, values } = this.#statement;
    const rows = await connection.query(statement, values(store, grants, this.#changes));
    this.#changed = new Set(rows.map(([id]) => id));
  }

  *outcomes(
    assignedId: (idsAfter: number) => number,
  ): Iterable<readonly [number: number, Outcome]> {
    for (const { number, change, idsAfter } of this.#changes) {
      const id = change[3] ?? assignedId(idsAfter);
      if (id > maxId) continue;
      yield [number, this.#statement.outcome(change, id, this.#changed)];
    }
  }
}

function partOf<K extends ChangeKind>(
  kind: K,
  changes: readonly GroupedChange<ChangeKind>[],
): Part<K> {
  const isOfKind = (grouped: GroupedChange<ChangeKind>): grouped is GroupedChange<K> =>
    grouped.change[0] === kind;
  return new Part<K>(changeStatements[kind], changes.filter(isOfKind));
}
