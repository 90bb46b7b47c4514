/**
 * CPU time and memory of a process and its descendants (proc(5)). Linux only.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** USER_HZ, the unit of times in proc(5): the same on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** User and system time of all its threads, in microseconds. */
export function cpuUs(pid: number): number {
  return sum(pid, (each) => {
    const stat = readFileSync(`/proc/${each}/stat`, 'utf8');
    // The name in parentheses can contain anything; utime and stime are the fields 12 and 13 after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1e6) / ticksPerSecond;
  });
}

/** Peak resident memory since resetPeak(), or since the start of the process if that is not allowed. */
export function peakMiB(pid: number): number {
  return sum(pid, (each) => {
    const status = readFileSync(`/proc/${each}/status`, 'utf8');
    const [, kiB] = /^VmHWM:\s+(\d+)/m.exec(status) ?? [];
    return Number(kiB) / 1024;
  });
}

export function resetPeak(pid: number): void {
  const resetHighWaterMark = '5';
  try {
    for (const each of tree(pid)) writeFileSync(`/proc/${each}/clear_refs`, resetHighWaterMark);
  } catch {
    console.error(`Memory peaks include startup: /proc/${pid}/clear_refs is not writable.`);
  }
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
