/**
 * Metrics in the text format of Prometheus (0.0.4), with the names, units and buckets of OpenTelemetry.
 */

/** Of durations in seconds: the upper bounds of all buckets but the last, which has no bound. */
export const bounds = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const;

/** All that the service measures, in the order of the text. */
const metrics = {
  plant_store_info: ['gauge', 'Versions; the value is always 1.'],
  http_server_request_duration_seconds: ['histogram', 'Requests by their time to the last byte.'],
  http_server_active_requests: ['gauge', 'Requests in progress.'],
  plant_store_refusals_total: ['counter', 'Problem documents, by their kind.'],
  plant_store_commit_duration_seconds: ['histogram', 'Commits, from the first write of each.'],
  plant_store_commit_writes_total: ['counter', 'Writes in these commits.'],
  plant_store_pending_writes: ['gauge', 'Writes without an outcome.'],
  plant_store_waiting_requests: ['gauge', 'Requests that wait for changes.'],
  plant_store_webhooks_sending: ['gauge', 'Messages to webhooks in progress.'],
  plant_store_webhook_lag_seconds: ['gauge', 'Age of the newest message when it was made.'],
  nodejs_eventloop_delay_p99_seconds: ['gauge', 'Event loop delay since the last scrape.'],
  nodejs_eventloop_delay_max_seconds: ['gauge', 'Event loop delay since the last scrape.'],
  v8js_memory_heap_used_bytes: ['gauge', 'Memory of JavaScript objects.'],
  process_memory_usage_bytes: ['gauge', 'Resident memory.'],
  plant_store_wal_size_bytes: ['gauge', 'Size of the write-ahead log of SQLite.'],
  plant_store_wal_oldest_reader_seconds: ['gauge', 'Age of the oldest PostgreSQL snapshot.'],
  plant_store_disk_free_bytes: ['gauge', 'Free space on the disk of the SQLite file.'],
  plant_store_database_size_bytes: ['gauge', 'Size of the database.'],
  plant_store_plants: ['gauge', 'Plants; an estimate.'],
  plant_store_tokens: ['gauge', 'Tokens, also expired and revoked ones; an estimate.'],
  plant_store_changes: ['gauge', 'Changes in the log; an estimate.'],
  plant_store_certificate_expiry_timestamp_seconds: ['gauge', 'End of the TLS certificate.'],
} as const satisfies Record<string, readonly [type: string, help: string]>;

export type MetricName = keyof typeof metrics;

/** The number of values in each bucket, and then the sum of all. */
export type Histogram = readonly number[];

/** Plain data, because workers send it to their primary. */
export type Series = readonly [
  name: MetricName,
  value: number | Histogram,
  labels?: Readonly<Record<string, string | number>>,
];

export const mediaType = 'text/plain; version=0.0.4; charset=utf-8';

/** All series of a metric have to be together. A metric without series is left out. */
export function textOf(series: readonly Series[]): string {
  const groups = Map.groupBy(series, ([name]) => name);
  const names = Object.keys(metrics) as MetricName[]; // its keys
  return names
    .filter((name) => groups.has(name))
    .map((name) => {
      const [type, help] = metrics[name];
      const lines = groups.get(name)?.map(linesOf).join('') ?? '';
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines}`;
    })
    .join('');
}

function linesOf([name, value, labels = {}]: Series): string {
  if (typeof value === 'number') return `${name}${labelsOf(labels)} ${value}\n`;
  const [buckets, sum] = [value.slice(0, -1), value.at(-1)];
  let count = 0;
  const lines = buckets.map((inBucket, at) => {
    count += inBucket;
    return `${name}_bucket${labelsOf({ ...labels, le: bounds[at] ?? '+Inf' })} ${count}\n`;
  });
  const all = labelsOf(labels);
  return `${lines.join('')}${name}_sum${all} ${sum}\n${name}_count${all} ${count}\n`;
}

function labelsOf(labels: Readonly<Record<string, string | number>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join()}}`;
}

const escapes: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

function escaped(value: string | number): string {
  return String(value).replace(/[\\"\n]/g, (character) => escapes[character] ?? character);
}
