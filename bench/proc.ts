/**
 * CPU time and memory of a process and its descendants (proc(5)). Linux only.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { byThread, threadKind, type CpuUsByThread } from './threads.ts';

/** USER_HZ, the unit of times in proc(5): the same on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** User and system time of all its threads, in microseconds. */
export function cpuUs(pid: number): number {
  return sum(pid, (each) => statOf(`/proc/${each}/stat`).cpuUs);
}

/** The same for each kind of thread. */
export function cpuUsByThread(pid: number): CpuUsByThread {
  const total = byThread(() => 0);
  for (const each of tree(pid)) {
    for (const thread of readdirSync(`/proc/${each}/task`)) {
      const { name, cpuUs: us } = statOf(`/proc/${each}/task/${thread}/stat`);
      total[threadKind(name, Number(thread) === each)] += us;
    }
  }
  return total;
}

function statOf(file: string): { name: string; cpuUs: number } {
  const stat = readFileSync(file, 'utf8');
  // The name in parentheses can contain anything; utime and stime are the fields 12 and 13 after it.
  const nameEnd = stat.lastIndexOf(')');
  const fields = stat.slice(nameEnd + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return {
    name: stat.slice(stat.indexOf('(') + 1, nameEnd),
    cpuUs: (ticks * 1e6) / ticksPerSecond,
  };
}

export function residentMiB(pid: number): number {
  return sum(pid, (each) => statusMiB(each, 'VmRSS'));
}

/** Peak resident memory since resetPeak(), or since the start of the process if that is not allowed. */
export function peakMiB(pid: number): number {
  return sum(pid, (each) => statusMiB(each, 'VmHWM'));
}

export function resetPeak(pid: number): void {
  const resetHighWaterMark = '5';
  try {
    for (const each of tree(pid)) writeFileSync(`/proc/${each}/clear_refs`, resetHighWaterMark);
  } catch {
    console.error(`Memory peaks include startup: /proc/${pid}/clear_refs is not writable.`);
  }
}

function statusMiB(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kiB] = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status) ?? [];
  return Number(kiB) / 1024;
}

function sum(pid: number, figure: (pid: number) => number): number {
  return tree(pid).reduce((total, each) => total + figure(each), 0);
}

function tree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(tree)];
}

/** Each thread has its own list of children. Node and PostgreSQL start processes from the main thread. */
function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.split(' ').filter(Boolean).map(Number);
}
