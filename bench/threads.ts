/**
 * CPU time by thread. The service has one event loop and one writer thread. Whichever of the two is busy all the
 * time limits the service, even if other threads are idle.
 */
import { medianOf, formatMeasured, table } from './figures.ts';

/** Kinds of threads, in the order of the columns. */
export const threadKinds = ['event loop', 'writer', 'libuv pool', 'V8', 'other'] as const;
export type ThreadKind = (typeof threadKinds)[number];

/** CPU time of each kind of thread, in microseconds. */
export type CpuUsByThread = Record<ThreadKind, number>;

/** The kind of each thread other than the main thread, by name. */
const kindsByName = new Map<string, ThreadKind>([
  ['WorkerThread', 'writer'], // the only one that the service starts
  ['libuv-worker', 'libuv pool'],
  ['node-V8Worker', 'V8'], // garbage collection and compilation
]);

/** The kind of a thread by the name that Node gives it. The name of the main thread depends on the version. */
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

/** A table of the CPU time for each request, with a column for each kind of thread. */
export function threadTable(
  header: readonly string[],
  rows: readonly (readonly [labels: readonly string[], cpuUs: CpuUsByThread])[],
): string {
  return table(
    [...header, ...threadKinds],
    rows.map(([labels, cpuUs]) => [
      ...labels,
      ...threadKinds.map((kind) => formatMeasured(cpuUs[kind])),
    ]),
  );
}
