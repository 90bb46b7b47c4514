/**
 * Puts load on one system with wrk, which runs on the last core. Its latencies are corrected for coordinated
 * omission: requests that wait behind a late response count as late too.
 */
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { disposableFirstId } from './plants.ts';
import type { Seeded } from './seed.ts';
import type { Running } from './systems.ts';
import { run } from './workspace.ts';

const script = fileURLToPath(new URL('wrk.lua', import.meta.url));
const lastCore = cpus().length - 1;
/** A later response is an error. */
const responseTimeoutSeconds = 10;

export interface Load {
  /** The kind of requests (wrk.lua). */
  requests: 'list' | 'page' | 'create' | 'update' | 'delete';
  connections: number;
  seconds: number;
  /** Seed of the random users and cursors; the same for all systems in a round. */
  seed: number;
}

export interface LoadResult {
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

/** Throws if a request failed or none was sent: the speed of failed requests means nothing. */
export async function wrk(
  { address, name }: Running,
  load: Load,
  seeded: Seeded,
): Promise<LoadResult> {
  const { requests: kind, connections, seconds } = load;
  const printed = await run('taskset', [
    '--cpu-list',
    String(lastCore),
    'wrk',
    '--threads=1',
    `--connections=${connections}`,
    `--duration=${seconds}s`,
    `--timeout=${responseTimeoutSeconds}s`,
    `--script=${script}`,
    address,
    '--',
    ...[kind, seeded.tokensFile, seeded.plants, disposableFirstId, load.seed].map(String),
  ]);
  const line = printed.split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`wrk printed no report: ${printed}`);
  const { requests, durationUs, p50Us, p99Us, errors }: Report = JSON.parse(line);
  if (Object.values(errors).some((count) => count > 0)) {
    throw new Error(
      `${kind} on ${name}: errors in ${requests} requests: ${JSON.stringify(errors)}`,
    );
  }
  if (requests === 0) throw new Error(`${kind} on ${name}: no response in ${seconds} s`);
  return {
    requests,
    requestsPerSecond: (requests / durationUs) * 1e6,
    p50Ms: p50Us / 1e3,
    p99Ms: p99Us / 1e3,
  };
}
