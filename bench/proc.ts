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

/** The same for a database server, whose sessions end meanwhile: their time is added to that of their parent. */
export function serverCpuUs(pid: number): number {
  const children = sumOfChildren(pid, (each) => statOf(`/proc/${each}/stat`).cpuUs);
  const { cpuUs: own, endedCpuUs } = statOf(`/proc/${pid}/stat`); // last, so that no session is missing
  return children + own + endedCpuUs;
}

function statOf(file: string): { name: string; cpuUs: number; endedCpuUs: number } {
  const stat = readFileSync(file, 'utf8');
  // The name in parentheses can contain anything; utime, stime, cutime and cstime are the fields 12 to 15 after it.
  const nameEnd = stat.lastIndexOf(')');
  const fields = stat.slice(nameEnd + 2).split(' ');
  const us = (first: number) =>
    ((Number(fields[first]) + Number(fields[first + 1])) * 1e6) / ticksPerSecond;
  return { name: stat.slice(stat.indexOf('(') + 1, nameEnd), cpuUs: us(11), endedCpuUs: us(13) };
}

export function residentMiB(pid: number): number {
  return sum(pid, (each) => statusMiB(each, 'VmRSS'));
}

/** Resident memory of a database server. Memory that its processes share counts once. */
export function serverMiB(pid: number): number {
  const proportionalMiB = (each: number) => {
    const rollup = readFileSync(`/proc/${each}/smaps_rollup`, 'utf8');
    const [, kiB] = /^Pss:\s+(\d+)/m.exec(rollup) ?? [];
    return Number(kiB) / 1024;
  };
  return proportionalMiB(pid) + sumOfChildren(pid, proportionalMiB);
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

/** Without children that end meanwhile. */
function sumOfChildren(pid: number, figure: (pid: number) => number): number {
  return childrenOf(pid).reduce((total, each) => {
    try {
      return total + figure(each);
    } catch (error) {
      if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      return total;
    }
  }, 0);
}

function tree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(tree)];
}

/** Each thread has its own list of children. Node and PostgreSQL start processes from the main thread. */
function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.split(' ').filter(Boolean).map(Number);
}
