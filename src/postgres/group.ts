/**
 * The changes to the plants of one store in a transaction, and the outcome of each change.
 */
import type { Change, ChangeKind, ChangeOf, ChangeResults } from '../changes.ts';
import { maxId } from '../ids.ts';
import { defect, outcomeUnknown, type Problem } from '../problem.ts';
import type { Quotas } from '../quota.ts';
import { changeStatements, type ChangeStatement, type GroupedChange } from './change-statements.ts';
import { prepared, type Connection } from './connection.ts';
import { NumberedCreates } from './numbered-creates.ts';
import { settled } from './settled.ts';

export const groupSql = {
  // Sent before the changes, because it locks the row of the store: groups of several replicas are serialized.
  begin: prepared<readonly [lastId: number, version: number]>(
    'begin_group',
    `
      UPDATE plant_store.stores
      SET last_id = least(greatest(last_id, $2), ${maxId}) + $3, version = version + 1, writer = $4
      WHERE store = $1
      RETURNING last_id - $3 AS last_id, version`,
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
}

export class Group {
  readonly store: number;
  /** In the order of arrival. */
  readonly queued: readonly QueuedChange[];
  /** Number of changes for which the store assigns the id. */
  readonly assignedCount: number;
  /** Assigned ids are above `lastId`; `version` is that of this group. Undefined until the server returns them. */
  begun: { lastId: number; version: number } | undefined;
  #isStoreMissing = false;
  readonly #largestId: number;
  readonly #parts: readonly Part<ChangeKind>[];
  /** Undefined if the server assigns the ids: the creates are among `#parts`. */
  readonly #numbered: NumberedCreates | undefined;

  /** The changes are in the order of arrival, at least one. No two of them have the same id. */
  constructor(store: number, queued: readonly QueuedChange[], { quotas, isCitus }: GroupOptions) {
    this.store = store;
    this.queued = queued;
    let changes = queued;
    if (quotas !== undefined || isCitus) {
      const creates = new Map(
        queued.flatMap(({ number, change }) => (isCreate(change) ? [[number, change]] : [])),
      );
      // The number of plants in the store is carried over by groups that only delete, too.
      if (creates.size > 0 || quotas?.perStore !== undefined)
        this.#numbered = new NumberedCreates(store, creates, { quotas, isCitus });
      changes = queued.filter(({ change }) => !isCreate(change));
    }
    const isAssigned = ([, , , id]: Change) => id === undefined;
    this.assignedCount = changes.filter(({ change }) => isAssigned(change)).length;
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

  /** Whether lock() must succeed before change(). */
  get isInTwoSteps(): boolean {
    return this.#numbered !== undefined;
  }

  /** For another attempt. */
  reset(): void {
    this.begun = undefined;
    this.#isStoreMissing = false;
  }

  /**
   * The first of two steps: locks the store, deletes, and finds out what the ids and quotas depend on. `attemptId` is
   * stored with the version and must be unique: if it is found there, the transaction was committed.
   */
  async lock(connection: Connection, attemptId: string): Promise<void> {
    const numbered = this.#numbered;
    if (numbered === undefined) return;
    const { hasQuotas, largestId, assignedCount } = numbered;
    const locked = hasQuotas
      ? connection.query(groupSql.lastGroup, [this.store, 0])
      : connection.query(groupSql.begin, [this.store, largestId, assignedCount, attemptId]);
    const changed = this.#sendParts(connection);
    const [[row]] = await settled([locked, numbered.check(connection), ...changed]);
    if (row === undefined) return;
    const [lastId, version, lastWriter = ''] = row;
    this.begun = { lastId, version: hasQuotas ? version + 1 : version };
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
    if (this.begun === undefined) {
      this.#isStoreMissing = true;
      return;
    }
    const largestId = numbered.decide(Math.min(this.begun.lastId, maxId));
    const writer = writerOf(attemptId, numbered.storePlants);
    const begun = numbered.hasQuotas ? this.#begin(connection, writer, largestId) : undefined;
    await settled([begun ?? Promise.resolve(), numbered.send(connection)]);
  }

  /** The outcome of each change, by its sequence number, if the transaction was committed. */
  *outcomes(): Iterable<readonly [number: number, Outcome]> {
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
    return this.#parts.map((part) => part.send(connection, this.store));
  }

  async #begin(connection: Connection, writer: string, largestId: number): Promise<void> {
    const values = [this.store, largestId, this.assignedCount, writer];
    const [row] = await connection.query(groupSql.begin, values);
    this.#isStoreMissing = row === undefined;
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

  async send(connection: Connection, store: number): Promise<void> {
    this.#changed = undefined;
    if (this.#changes.length === 0) return;
    const { statement, values } = this.#statement;
    const rows = await connection.query(statement, values(store, this.#changes));
    this.#changed = new Set(rows.map(([id]) => id));
  }

  *outcomes(
    assignedId: (idsAfter: number) => number,
  ): Iterable<readonly [number: number, Outcome]> {
    for (const { number, change, idsAfter } of this.#changes) {
      const id = change[3] ?? assignedId(idsAfter);
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
