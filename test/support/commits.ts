import { processSeries, type MetricName } from '../../src/metrics/metrics.ts';

/** The number of commits of this process, and of their writes, while it works. */
export async function commitsOf(
  work: () => Promise<void>,
): Promise<{ commits: number; writes: number }> {
  const before = count();
  await work();
  const after = count();
  return { commits: after.commits - before.commits, writes: after.writes - before.writes };
}

function count() {
  const series = processSeries(1);
  const valueOf = (wanted: MetricName) => series.find(([name]) => name === wanted)?.[1] ?? 0;
  const durations = [valueOf('plant_store_commit_duration_seconds')].flat().slice(0, -1);
  const commits = durations.reduce((sum, inBucket) => sum + inBucket, 0);
  return { commits, writes: Number(valueOf('plant_store_commit_writes_total')) };
}
