/**
 * A write of an operator or to shares, tokens and users, as data: what it reads, and a pure decision what follows from
 * that. Each engine runs all of them in the same way: SQLite by name on its writer thread, PostgreSQL in two round trips.
 */
import type { Identified } from '../access/access.ts';
import type { NewEntry } from '../log/change-log.ts';
import type { Query, Row, Statement } from './statement.ts';
import type { Writes } from './named-writes.ts';

export interface Write<Result = unknown> extends Author {
  /** Its row is locked before the reads, until the commit. Undefined if the write concerns no store. */
  readonly store: number | undefined;
  readonly reads: readonly Query[];
  /**
   * Throws the Problem of a write that is refused. `position` is that of the last change of the store: the entries get
   * the next ones.
   */
  readonly decide: (rows: readonly (readonly Row[])[], position: number) => Outcome<Result>;
  /** Whether a repetition has the same result: if false, a lost response makes the outcome unknown. */
  readonly canRepeat: boolean;
  /** If false, the store need not be locked: the write can be repeated at any time, and adds no entries. */
  readonly needsLock: boolean;
}

/** Who writes. A write of an operator has no author. */
export interface Author {
  /** Identified again before the decision, which a revoked token does not reach. */
  readonly by?: Identified | undefined;
  readonly request?: string | undefined;
}

export interface Outcome<Result> {
  readonly result: Result;
  readonly writes?: readonly Query[];
  /** For the log. Any that concerns no plant makes the cached grants of the store stale. */
  readonly entries?: readonly NewEntry[];
}

interface Spec<Rows extends readonly Row[], Result> extends Author {
  readonly store: number | undefined;
  readonly reads: { readonly [At in keyof Rows]: Query<Rows[At]> };
  readonly decide: (
    rows: { readonly [At in keyof Rows]: readonly Rows[At][] },
    position: number,
  ) => Outcome<Result>;
  readonly canRepeat?: boolean;
  readonly needsLock?: boolean;
}

/** Gives `decide` the types of the rows that are read. */
export function writeOf<const Rows extends readonly Row[], Result>({
  canRepeat = true,
  needsLock = true,
  ...write
}: Spec<Rows, Result>): Write<Result> {
  return { ...write, canRepeat, needsLock } as Write<Result>; // the rows are those of its reads
}

export type ResultOf<Name extends keyof Writes> =
  ReturnType<Writes[Name]> extends Write<infer Result> ? Result : never;

/** What an engine does with these statements. */
export interface Engine {
  /** The number of the store with this name. */
  findStore(name: string): Promise<number | undefined>;
  /** The same, and adds the store if there is none. */
  ensureStore(name: string): Promise<number>;
  /** Reads rows of a store; if that is undefined, of all stores. */
  read<R extends Row>(
    store: number | undefined,
    statement: Statement<R>,
    values: readonly unknown[],
    turn?: string,
  ): Promise<readonly R[]>;
  /** Arguments and results are plain data, because they are copied to another thread and back. */
  write<Name extends keyof Writes>(
    name: Name,
    ...args: Parameters<Writes[Name]>
  ): Promise<ResultOf<Name>>;
}
