/**
 * What this process counts, from its start on. Counting has to cost next to nothing, because every request does: the
 * text is made from the counts when somebody asks for it.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { problemKinds, type ProblemKind } from '../problem.ts';
import { bounds, type Histogram, type Series } from './text.ts';

/** What goes up and down, and what was seen last. Whoever causes a change sets it here. */
export const gauges = {
  activeRequests: 0,
  pendingWrites: 0,
  waitingRequests: 0,
  webhooksSending: 0,
  webhookLagMs: undefined as number | undefined, // until a message is sent
  certificateEndMs: undefined as number | undefined, // without TLS
};

/** The number of durations in each bucket, and then their sum. */
class Durations {
  readonly #counts = new Float64Array(bounds.length + 1);
  #sum = 0;

  add(seconds: number): void {
    let at = 0;
    while (seconds > (bounds[at] ?? Infinity)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += seconds;
  }

  get values(): Histogram {
    return [...this.#counts, this.#sum];
  }
}

/** By method, status and route. All three are from short lists, so no client can add many. */
const requests = new Map<string, Durations>();
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export function countRequest(
  method: string,
  route: string | undefined,
  status: number,
  seconds: number,
): void {
  const known = knownMethods.has(method) ? method : '_OTHER';
  const key = `${known} ${status} ${route ?? 'unknown'}`;
  let durations = requests.get(key);
  if (durations === undefined) requests.set(key, (durations = new Durations()));
  durations.add(seconds);
}

const refusals = new Map<string, number>(Object.keys(problemKinds).map((kind) => [kind, 0]));

/** Also if the request was not even HTTP. */
export function countRefusal(kind: ProblemKind): void {
  refusals.set(kind, (refusals.get(kind) ?? 0) + 1);
}

const commits = new Durations();
let committedWrites = 0;

/** `writes` includes those that were refused, such as a taken id; `sinceMs` is when the first of them was queued. */
export function countCommit(writes: number, sinceMs: number): void {
  committedWrites += writes;
  commits.add((performance.now() - sinceMs) / 1_000);
}

/** Node measures the time between two runs of a timer, which is this long if nothing delays it. */
const timerMs = 20;
const secondsLate = (ns: number) => Math.max(0, ns / 1e9 - timerMs / 1_000);
let delays: ReturnType<typeof monitorEventLoopDelay> | undefined;

/** The series of this process. Delays of the event loop are those since the last call; the first call begins with them. */
export function processSeries(): Series[] {
  const { heapUsed, rss } = process.memoryUsage();
  const series: Series[] = [...requests].map(([key, { values }]) => {
    const [http_request_method = '', http_response_status_code = '', http_route = ''] =
      key.split(' ');
    const labels = { http_request_method, http_route, http_response_status_code };
    return ['http_server_request_duration_seconds', values, labels];
  });
  for (const [kind, count] of refusals)
    series.push(['plant_store_refusals_total', count, { kind }]);
  series.push(
    ['http_server_active_requests', gauges.activeRequests],
    ['plant_store_commit_duration_seconds', commits.values],
    ['plant_store_commit_writes_total', committedWrites],
    ['plant_store_pending_writes', gauges.pendingWrites],
    ['plant_store_waiting_requests', gauges.waitingRequests],
    ['plant_store_webhooks_sending', gauges.webhooksSending],
    ['v8js_memory_heap_used_bytes', heapUsed],
    ['process_memory_usage_bytes', rss],
  );
  if (gauges.webhookLagMs !== undefined) {
    series.push(['plant_store_webhook_lag_seconds', gauges.webhookLagMs / 1_000]);
  }
  if (delays === undefined) {
    delays = monitorEventLoopDelay({ resolution: timerMs });
    delays.enable();
  } else if (delays.count > 0) {
    series.push(
      ['nodejs_eventloop_delay_p99_seconds', secondsLate(delays.percentile(99))],
      ['nodejs_eventloop_delay_max_seconds', secondsLate(delays.max)],
    );
    delays.reset();
  }
  return series;
}
