/**
 * One load on one system by wrk, which keeps to the last core. Its latencies are corrected for
 * coordinated omission: while an answer is late, those who would have asked meanwhile count as well.
 */
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { fodderFirstId } from './plants.ts';
import type { Seeded } from './seed.ts';
import type { Running } from './systems.ts';
import { run } from './workspace.ts';

const script = fileURLToPath(new URL('wrk.lua', import.meta.url));
const lastCore = cpus().length - 1;

export interface Load {
  /** Which of the requests of wrk.lua. */
  requests: 'list' | 'list_of_any' | 'page' | 'create' | 'delete' | 'mix';
  connections: number;
  seconds: number;
  /** Of the random users and cursors; the same for all systems of a round. */
  seed: number;
}

export interface Answered {
  requests: number;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** The line that wrk.lua prints. */
interface Report {
  requests: number;
  durationUs: number;
  p50Us: number;
  p99Us: number;
  errors: Record<'connect' | 'read' | 'write' | 'timeout' | 'status', number>;
}

/** Throws unless there were requests and each had a good answer: the speed of failing says nothing. */
export async function wrk(
  { address, name }: Running,
  load: Load,
  seeded: Seeded,
): Promise<Answered> {
  const { requests: kind, connections, seconds } = load;
  const printed = await run('taskset', [
    '--cpu-list',
    String(lastCore),
    'wrk',
    '--threads=1',
    `--connections=${connections}`,
    `--duration=${seconds}s`,
    `--script=${script}`,
    address,
    '--',
    ...[kind, seeded.tokensFile, seeded.plants, fodderFirstId, load.seed].map(String),
  ]);
  const line = printed.split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`wrk reports nothing: ${printed}`);
  const { requests, durationUs, p50Us, p99Us, errors }: Report = JSON.parse(line);
  if (Object.values(errors).some((count) => count > 0)) {
    throw new Error(
      `${kind} on ${name}: errors of ${requests} requests: ${JSON.stringify(errors)}`,
    );
  }
  if (requests === 0)
    throw new Error(`${kind} on ${name}: no request was answered in ${seconds} s`);
  return {
    requests,
    requestsPerSecond: (requests / durationUs) * 1e6,
    p50Ms: p50Us / 1e3,
    p99Ms: p99Us / 1e3,
  };
}
