/**
 * One transaction of changes to the plants of a store, and what became of each of them.
 */
import type { Change, ChangeKind, ChangeResults } from '../changes.ts';
import { idMax } from '../ids.ts';
import { defect, type Problem } from '../problem.ts';
import { changeStatements, type Kind, type Placed } from './change-statements.ts';
import { prepared, type Connection } from './connection.ts';
import { settled } from './pool.ts';

export const groupSql = {
  // First of all, because it locks the row of the store: groups of several replicas take turns.
  begin: prepared<readonly [lastId: number, version: number]>(
    'begin_group',
    `
      UPDATE plant_store.stores
      SET last_id = least(greatest(last_id, $2), ${idMax}) + $3, version = version + 1, writer = $4
      WHERE store = $1
      RETURNING last_id - $3 AS last_id, version`,
  ),
  // Locked, so that the answer comes only when a group that is still in progress is over.
  lastGroup: prepared<readonly [lastId: number, version: number, writer: string]>(
    'last_group',
    `
      SELECT last_id - $2 AS last_id, version, writer
      FROM plant_store.stores WHERE store = $1 FOR UPDATE`,
  ),
};

/** The result of a change, or what it was refused for. */
export type Outcome = ChangeResults[ChangeKind] | Problem;

export class Group {
  readonly store: number;
  /** When the first of its changes came. */
  readonly sinceMs: number;
  readonly numbers: readonly number[];
  /** How many of the changes leave their id to the store. */
  readonly assigned: number;
  /** The largest id before this group, and the version with it, once the server has said so. */
  last: { id: number; version: number } | undefined;
  readonly #largestId: number;
  readonly #parts: readonly Part<ChangeKind>[];

  /** Changes by number, in the order in which they came; no two of them name the same id. */
  constructor(store: number, changes: ReadonlyMap<number, Change>, sinceMs: number) {
    this.store = store;
    this.sinceMs = sinceMs;
    this.numbers = [...changes.keys()];
    const all = [...changes.values()];
    const isAssigned = ([, , , id]: Change) => id === undefined;
    this.assigned = all.filter(isAssigned).length;
    this.#largestId = Math.max(0, ...all.map(([kind, , , id = 0]) => (kind === 'create' ? id : 0)));
    let ahead = this.assigned;
    const placed = [...changes].map(([number, change]) => {
      return { number, change, ahead: isAssigned(change) ? --ahead : 0 };
    });
    const kindNames = Object.keys(changeStatements) as ChangeKind[]; // its keys
    this.#parts = kindNames.map((kind) => partOf(kind, placed));
  }

  /**
   * One round trip. Rejects with the error of the server. `writer` is written beside the version of the
   * store and never twice: whoever finds it there knows that the group came through.
   */
  async commit(connection: Connection, writer: string): Promise<void> {
    this.last = undefined;
    const begun = [connection.command('BEGIN'), this.#begin(connection, writer)];
    const changed = this.#parts.map((part) => part.send(connection, this.store));
    const committed = connection.command('COMMIT');
    await settled([...begun, ...changed, committed]);
    const done = await committed;
    if (done !== 'COMMIT') throw defect(new Error(`the server answered COMMIT with ${done}`));
  }

  /** By the number of the change, the group being committed. */
  *outcomes(): Iterable<readonly [number: number, Outcome]> {
    const before = this.last?.id ?? Number.NaN;
    // The small numbers first: above the largest id, not every number can be told from the next.
    const idAt = (ahead: number) => before + (this.assigned - ahead);
    for (const part of this.#parts) yield* part.outcomes(idAt);
  }

  async #begin(connection: Connection, writer: string): Promise<void> {
    const values = [this.store, this.#largestId, this.assigned, writer];
    const [row] = await connection.query(groupSql.begin, values);
    if (row === undefined) throw defect(new Error(`there is no store ${this.store}`));
    const [id, version] = row;
    this.last = { id, version };
  }
}

/** The changes of a kind. */
class Part<K extends ChangeKind> {
  readonly #kind: Kind<K>;
  readonly #changes: readonly Placed<K>[];
  /** The ids that the server has returned; undefined until it has. */
  #changed: ReadonlySet<number> | undefined;

  constructor(kind: Kind<K>, changes: readonly Placed<K>[]) {
    this.#kind = kind;
    this.#changes = changes;
  }

  async send(connection: Connection, store: number): Promise<void> {
    this.#changed = undefined;
    if (this.#changes.length === 0) return;
    const { statement, values } = this.#kind;
    const rows = await connection.query(statement, values(store, this.#changes));
    this.#changed = new Set(rows.map(([id]) => id));
  }

  /** `idAt` is the id that the store has assigned to a change. */
  *outcomes(idAt: (ahead: number) => number): Iterable<readonly [number: number, Outcome]> {
    for (const { number, change, ahead } of this.#changes) {
      const id = change[3] ?? idAt(ahead);
      yield [number, this.#kind.outcome(change, id, this.#changed)];
    }
  }
}

function partOf<K extends ChangeKind>(kind: K, changes: readonly Placed<ChangeKind>[]): Part<K> {
  const isOfKind = (placed: Placed<ChangeKind>): placed is Placed<K> => placed.change[0] === kind;
  return new Part<K>(changeStatements[kind], changes.filter(isOfKind));
}
