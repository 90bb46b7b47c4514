/**
 * What this process counts, and the text of all metrics: the format of Prometheus (0.0.4), with names and buckets of
 * OpenTelemetry. Counting costs so little that it is never off; the text is made when somebody asks for it.
 */
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { problemKinds, type ProblemKind } from '../problem.ts';

/** All metrics, in the order of the text. */
export const help = {
  plant_store_info: 'Versions. The value is always 1.',
  http_server_request_duration_seconds: 'Requests, by the time until their end.',
  http_server_active_requests: 'Requests in progress.',
  plant_store_refusals_total: 'Problem documents.',
  plant_store_commit_duration_seconds: 'Commits, by the time since their first write was queued.',
  plant_store_commit_writes_total: 'Writes in commits, including those that were refused.',
  plant_store_pending_writes: 'Writes without an outcome.',
  plant_store_waiting_requests: 'Requests that wait for changes.',
  plant_store_webhooks_sending: 'Attempts to send to webhooks in progress.',
  plant_store_webhook_delay_seconds:
    'Age of the oldest change in the newest message, when it was made.',
  nodejs_eventloop_delay_p99_seconds: 'Delay of the event loop since the last scrape.',
  nodejs_eventloop_delay_max_seconds: 'Delay of the event loop since the last scrape.',
  v8js_memory_heap_used_bytes: 'Memory of JavaScript objects.',
  process_memory_usage_bytes: 'Resident memory.',
  plant_store_wal_size_bytes: 'Size of the write-ahead log of SQLite.',
  plant_store_wal_oldest_reader_seconds: 'Age of the oldest transaction that reads in PostgreSQL.',
  plant_store_disk_free_bytes: 'Free space on the disk of the SQLite file.',
  plant_store_database_size_bytes: 'Size of the database.',
  plant_store_plants: 'Plants; an estimate.',
  plant_store_tokens: 'Tokens, including those that have ended; an estimate.',
  plant_store_changes: 'Changes in the log; an estimate.',
  plant_store_backup_last_verified_timestamp_seconds: 'When the last verified backup was begun.',
  plant_store_certificate_expiry_timestamp_seconds: 'End of the TLS certificate.',
};

export type MetricName = keyof typeof help;

/** Plain data, which workers send. A histogram has the count of each bucket and then the sum. It is left out without a value. */
export type Series = readonly [
  name: MetricName,
  value: number | readonly number[] | null | undefined,
  labels?: Labels,
];

type Labels = Readonly<Record<string, string | number>>;

const packageFile = new URL('../../package.json', import.meta.url);
const { version } = JSON.parse(readFileSync(packageFile, 'utf8'));
export const versions = { version: String(version), node: process.versions.node };

/** Plain numbers. Whoever causes a change sets them. */
export const metrics = {
  http_server_active_requests: 0,
  plant_store_commit_writes_total: 0,
  plant_store_pending_writes: 0,
  plant_store_waiting_requests: 0,
  plant_store_webhooks_sending: 0,
  plant_store_webhook_delay_seconds: undefined as number | undefined,
  plant_store_certificate_expiry_timestamp_seconds: undefined as number | undefined,
};

/** Upper bounds of the buckets of a histogram, in seconds. Another bucket has the rest. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const newHistogram = () => new Float64Array(bounds.length + 2);
/** No client can add many: routes, methods and statuses are few. */
const requests = new Map<string, { labels: Labels; histogram: Float64Array }>();
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const refusals = new Map(Object.keys(problemKinds).map((kind) => [kind, 0]));
const commits = newHistogram();

export function countRequest(method: string, route: string, status: number, ms: number): void {
  const http_request_method = methods.includes(method) ? method : '_OTHER';
  const key = `${http_request_method} ${status} ${route}`;
  let counted = requests.get(key);
  if (counted === undefined) {
    const labels = { http_request_method, http_route: route, http_response_status_code: status };
    requests.set(key, (counted = { labels, histogram: newHistogram() }));
  }
  add(counted.histogram, ms);
}

/** Also if the request was not valid HTTP. */
export function countRefusal(kind: ProblemKind): void {
  refusals.set(kind, (refusals.get(kind) ?? 0) + 1);
}

/** `writes` includes those that were refused, such as a taken id; the first of them was queued at `sinceMs`. */
export function countCommit(writes: number, sinceMs: number): void {
  metrics.plant_store_commit_writes_total += writes;
  add(commits, performance.now() - sinceMs);
}

function add(histogram: Float64Array, ms: number): void {
  let at = 0;
  while (ms > (bounds[at] ?? Infinity) * 1_000) at++;
  histogram[at] = (histogram[at] ?? 0) + 1;
  histogram[bounds.length + 1] = (histogram[bounds.length + 1] ?? 0) + ms / 1_000;
}

/** Node measures the time between two runs of a timer, which is this long if nothing delays it. */
const timerMs = 20;
const delays = monitorEventLoopDelay({ resolution: timerMs });

export function processSeries(worker: number): Series[] {
  const secondsLate = (ns: number) =>
    delays.count === 0 ? undefined : Math.max(0, ns / 1e9 - timerMs / 1_000);
  const { heapUsed, rss } = process.memoryUsage();
  const series: Series[] = [
    ...Object.entries(metrics).map(([name, value]): Series => [name as MetricName, value]), // its keys
    ['plant_store_commit_duration_seconds', [...commits]],
    ['nodejs_eventloop_delay_p99_seconds', secondsLate(delays.percentile(99))],
    ['nodejs_eventloop_delay_max_seconds', secondsLate(delays.max)],
    ['v8js_memory_heap_used_bytes', heapUsed],
    ['process_memory_usage_bytes', rss],
  ];
  delays.enable(); // nobody asks in most services
  delays.reset();
  for (const [kind, count] of refusals)
    series.push(['plant_store_refusals_total', count, { kind }]);
  for (const { labels, histogram } of requests.values()) {
    series.push(['http_server_request_duration_seconds', [...histogram], labels]);
  }
  return series.map(([name, value, labels]) => [name, value, { ...labels, worker }]);
}

export function textOf(series: readonly Series[]): string {
  const texts = Object.entries(help).map(([name, text]) => {
    const lines = series.filter((one) => one[0] === name && one[1] != null).map(linesOf);
    if (lines.length === 0) return '';
    const plain = name.endsWith('_total') ? 'counter' : 'gauge';
    const type = name.endsWith('_duration_seconds') ? 'histogram' : plain;
    return `# HELP ${name} ${text}\n# TYPE ${name} ${type}\n${lines.join('')}`;
  });
  return texts.join('');
}

function linesOf([name, value, labels = {}]: Series): string {
  if (!Array.isArray(value)) return `${name}${labelsOf(labels)} ${String(value)}\n`;
  const counts: readonly number[] = value.slice(0, -1);
  let count = 0;
  const buckets = counts.map((inBucket, at) => {
    count += inBucket;
    return `${name}_bucket${labelsOf({ ...labels, le: bounds[at] ?? '+Inf' })} ${count}\n`;
  });
  const all = labelsOf(labels);
  return `${buckets.join('')}${name}_sum${all} ${value.at(-1)}\n${name}_count${all} ${count}\n`;
}

function labelsOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    const text = String(value).replaceAll(/[\\"]/g, String.raw`\$&`);
    return `${name}="${text.replaceAll('\n', String.raw`\n`)}"`;
  });
  return pairs.length === 0 ? '' : `{${pairs.join()}}`;
}
