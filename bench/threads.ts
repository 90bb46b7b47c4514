/**
 * CPU time by thread. The service has one event loop and one thread that writes: whichever of the two is
 * busy all the time limits it, however much time the others have left.
 */
import { medianOf, shown, table } from './figures.ts';

/** Kinds of threads, in the order of the columns. */
export const threadKinds = ['event loop', 'writer', 'libuv pool', 'V8', 'other'] as const;
export type ThreadKind = (typeof threadKinds)[number];

/** CPU time of each kind of thread, in microseconds. */
export type CpuUsByThread = Record<ThreadKind, number>;

/** The kind of thread that each other name belongs to. */
const kindsByName = new Map<string, ThreadKind>([
  ['WorkerThread', 'writer'], // the only one that the service starts
  ['libuv-worker', 'libuv pool'],
  ['node-V8Worker', 'V8'], // garbage collection and compilation
]);

/** What kind a thread is by the name that Node gives it; the main thread has another on each version. */
export function threadKind(name: string, isMain: boolean): ThreadKind {
  return isMain ? 'event loop' : (kindsByName.get(name) ?? 'other');
}

/** Applies `figure` to each kind. */
export function byThread(figure: (kind: ThreadKind) => number): CpuUsByThread {
  return {
    'event loop': figure('event loop'),
    writer: figure('writer'),
    'libuv pool': figure('libuv pool'),
    V8: figure('V8'),
    other: figure('other'),
  };
}

/** The median of each kind over rounds. */
export function medianByThread(rounds: readonly { cpuUsByThread: CpuUsByThread }[]): CpuUsByThread {
  return byThread((kind) => medianOf(rounds, ({ cpuUsByThread }) => cpuUsByThread[kind]));
}

/** A table with a row of labels and the time for each request in each kind of thread. */
export function threadTable(
  header: readonly string[],
  rows: readonly (readonly [labels: readonly string[], cpuUs: CpuUsByThread])[],
): string {
  return table(
    [...header, ...threadKinds],
    rows.map(([labels, cpuUs]) => [...labels, ...threadKinds.map((kind) => shown(cpuUs[kind]))]),
  );
}
