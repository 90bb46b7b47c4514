/**
 * A write of an operator or to shares, tokens and users, as data: what it reads, and a pure decision what follows from
 * that. Each engine runs all of them in the same way: SQLite by name on its writer thread, PostgreSQL in two round trips.
 */
import type { Author } from '../access/user-storage.ts';
import type { LogEntry, NewEntry } from '../log/change-log.ts';
import type { Query, Row, Statement } from './statement.ts';
import type { Writes } from './named-writes.ts';

export interface Write<Result = unknown> extends Author {
  /** Its row is locked before the reads, until the commit. Undefined if the write concerns no store. */
  readonly store: number | undefined;
  readonly reads: readonly Query[];
  /** Throws the Problem of a write that is refused. */
  readonly decide: (rows: readonly (readonly Row[])[]) => Outcome<Result>;
  /** If true, the store need not be locked: the write can be repeated at any time, and adds no entries. */
  readonly withoutLock?: boolean;
}

interface Outcome<Result> {
  readonly result: Result;
  /** Gets the positions of the entries. Without entries, it can be repeated at any time. */
  readonly writes?: (positions: readonly number[]) => readonly Query[];
  /** For the log. Any that concerns no plant makes the cached grants of the store stale. */
  readonly entries?: readonly NewEntry[];
}

/** What a write does to a store, given its last position. Throws the Problem of a write that is refused. */
export function outcomeOf<Result>(
  { decide, by, request }: Write<Result>,
  rows: readonly (readonly Row[])[],
  lastPosition: number,
) {
  const { result, writes = () => [], entries = [] } = decide(rows);
  const logged = entries.map((entry, at): LogEntry => ({
    ...entry,
    position: lastPosition + 1 + at,
    by,
    request,
  }));
  return { result, writes: writes(logged.map(({ position }) => position)), entries: logged };
}

interface Spec<Rows extends readonly Row[], Result> extends Omit<Write, 'reads' | 'decide'> {
  readonly reads: { readonly [At in keyof Rows]: Query<Rows[At]> };
  readonly decide: (rows: {
    readonly [At in keyof Rows]: readonly Rows[At][];
  }) => Outcome<Result>;
}

/** Gives `decide` the types of the rows that are read. */
export function writeOf<const Rows extends readonly Row[], Result>(
  write: Spec<Rows, Result>,
): Write<Result> {
  return write as Write<Result>; // the rows are those of its reads
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
