/**
 * One transaction of changes to the plants of a store, and the outcome of each change.
 */
import type { Change, ChangeKind, ChangeOf, ChangeResults } from '../changes.ts';
import { maxId } from '../ids.ts';
import { defect, type Problem } from '../problem.ts';
import type { Quotas } from '../quota.ts';
import { changeStatements, type ChangeStatement, type GroupedChange } from './change-statements.ts';
import { prepared, type Connection } from './connection.ts';
import { LimitedCreates } from './limited-creates.ts';
import { settled } from './settled.ts';

export const groupSql = {
  // Sent first, because it locks the row of the store: groups of several replicas are serialized.
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

export class Group {
  readonly store: number;
  /** When the first of its changes was queued. */
  readonly sinceMs: number;
  readonly numbers: readonly number[];
  /** Number of changes for which the store assigns the id. */
  readonly assignedCount: number;
  /** Assigned ids are above `lastId`; `version` is that of this group. Undefined until the server returns them. */
  begun: { lastId: number; version: number } | undefined;
  /** Until COMMIT is sent, the server rolls back the group if the connection is lost. */
  isCommitSent = false;
  readonly #largestId: number;
  readonly #parts: readonly Part<ChangeKind>[];
  /** Undefined without quotas: the creates are among `#parts`. */
  readonly #limited: LimitedCreates | undefined;

  /** Changes by sequence number, in the order of arrival. No two of them have the same id. */
  constructor(
    store: number,
    changes: ReadonlyMap<number, Change>,
    sinceMs: number,
    quotas: Quotas | undefined,
  ) {
    this.store = store;
    this.sinceMs = sinceMs;
    this.numbers = [...changes.keys()];
    if (quotas !== undefined) {
      const creates = new Map([...changes].filter(isCreate));
      // The number of plants in the store is carried over by groups that only delete, too.
      if (creates.size > 0 || quotas.perStore !== undefined)
        this.#limited = new LimitedCreates(store, creates, quotas);
      changes = new Map([...changes].filter((change) => !isCreate(change)));
    }
    const all = [...changes.values()];
    const isAssigned = ([, , , id]: Change) => id === undefined;
    this.assignedCount = all.filter(isAssigned).length;
    this.#largestId = Math.max(0, ...all.map(([kind, , , id = 0]) => (kind === 'create' ? id : 0)));
    let idsLeft = this.assignedCount;
    const grouped = [...changes].map(([number, change]) => {
      return { number, change, idsAfter: isAssigned(change) ? --idsLeft : 0 };
    });
    const kindNames = Object.keys(changeStatements) as ChangeKind[]; // it has no other keys
    this.#parts = kindNames.map((kind) => partOf(kind, grouped));
  }

  /**
   * Takes one round trip, or two with quotas. Rejects with the error of the server. `attemptId` is stored with the version
   * and must be unique: if it is found there, the group was committed.
   */
  async commit(connection: Connection, attemptId: string): Promise<void> {
    this.begun = undefined;
    this.isCommitSent = false;
    const begun = connection.command('BEGIN');
    const changed =
      this.#limited === undefined
        ? [this.#begin(connection, attemptId, this.#largestId), ...this.#sendParts(connection)]
        : await this.#sendLimited(this.#limited, connection, attemptId, begun);
    this.isCommitSent = true;
    const committed = connection.command('COMMIT');
    await settled([begun, ...changed, committed]);
    const tag = await committed;
    if (tag !== 'COMMIT') throw defect(new Error(`the server responded to COMMIT with ${tag}`));
  }

  /** The outcome of each change, by its sequence number, if the group was committed. */
  *outcomes(): Iterable<readonly [number: number, Outcome]> {
    const before = this.begun?.lastId ?? Number.NaN;
    // In parentheses, because sums above the largest id are not exact.
    const assignedId = (idsAfter: number) => before + (this.assignedCount - idsAfter);
    for (const part of this.#parts) yield* part.outcomes(assignedId);
    if (this.#limited !== undefined) yield* this.#limited.outcomes();
  }

  #sendParts(connection: Connection): Promise<void>[] {
    return this.#parts.map((part) => part.send(connection, this.store));
  }

  /** Locks the store, counts its plants, and sends the creates that there is room for. */
  async #sendLimited(
    limited: LimitedCreates,
    connection: Connection,
    attemptId: string,
    begun: Promise<string>,
  ): Promise<Promise<void>[]> {
    try {
      const locked = connection.query(groupSql.lastGroup, [this.store, 0]);
      const changed = this.#sendParts(connection);
      await settled([begun, locked, ...changed, limited.countOwners(connection)]);
      const [[lastId, version, lastWriter] = noStore(this.store)] = await locked;
      this.begun = { lastId, version: version + 1 };
      const before = plantsIn(lastWriter);
      const deleted = this.#parts.reduce((sum, part) => sum + part.changedCount, 0);
      await limited.countStore(connection, before === undefined ? undefined : before - deleted);
      const largestId = limited.decide(Math.min(lastId, maxId));
      const writer = writerOf(attemptId, limited.storePlants);
      return [this.#begin(connection, writer, largestId), limited.send(connection)];
    } catch (error) {
      // Not awaited: what is sent next on the connection runs after it.
      connection.command('ROLLBACK').catch(() => {});
      throw error;
    }
  }

  async #begin(connection: Connection, writer: string, largestId: number): Promise<void> {
    const values = [this.store, largestId, this.assignedCount, writer];
    const [[lastId, version] = noStore(this.store)] = await connection.query(
      groupSql.begin,
      values,
    );
    this.begun = { lastId, version };
  }
}

function noStore(store: number): never {
  throw defect(new Error(`there is no store ${store}`));
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

function isCreate(change: [number, Change]): change is [number, ChangeOf<'create'>] {
  return change[1][0] === 'create';
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
