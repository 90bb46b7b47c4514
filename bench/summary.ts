/**
 * The summary of docs/explanation/performance.md: three sentences and one table from the figures of a run.
 */
import { formatMeasured, formatNumber, table } from './figures.ts';
import type { Measured } from './load.ts';

/** The results for one number of plants. */
export interface Sized {
  plants: number;
  measured: readonly Measured[];
}

/** The workloads of the summary. Changes are compared with the synced log, because bare stores nothing. */
const summarized = [
  { workload: 'list-20', title: 'First page of a list', baseline: 'bare' },
  { workload: 'random-page', title: 'Any page of a list', baseline: 'bare' },
  { workload: 'create-32', title: 'Create, 32 clients', baseline: 'synced log' },
  { workload: 'create-256', title: 'Create, 256 clients', baseline: 'synced log' },
  { workload: 'delete', title: 'Delete, 32 clients', baseline: 'synced log' },
] as const;

export interface Comparison {
  title: string;
  isRead: boolean;
  service: Measured;
  typical: Measured;
  /** Bare for reads, the synced log for changes. */
  baseline: Measured;
  /** Requests per second of the service relative to those of the other system. */
  toTypical: number;
  toBaseline: number;
}

/** Returns one for each workload of the summary. Throws if one was not measured. */
export function compareWorkloads(measured: readonly Measured[]): Comparison[] {
  return summarized.map(({ workload, title, baseline }) => {
    const of = (system: string) => {
      const found = measured.find((each) => each.workload === workload && each.system === system);
      if (found === undefined) throw new Error(`${workload} of ${system} was not measured`);
      return found;
    };
    const service = of('service');
    return {
      title,
      isRead: baseline === 'bare',
      service,
      typical: of('typical'),
      baseline: of(baseline),
      toTypical: service.ratioTo.typical,
      toBaseline: service.ratioTo[baseline],
    };
  });
}

/** Requests per second as a multiple of those of the typical service, such as "1.7 to 3.4". */
function timesTypical(comparisons: readonly Comparison[]): string {
  return range(
    comparisons.map(({ toTypical }) => toTypical),
    (ratio) => ratio.toFixed(1),
  );
}

export function sentences(plants: number, comparisons: readonly Comparison[]): string {
  const [firstPage, page, , create] = comparisons.map(({ service }) =>
    formatMeasured(service.requestsPerSecond),
  );
  const toBaseline = (isRead: boolean) =>
    range(
      comparisons.filter((each) => each.isRead === isRead).map((each) => each.toBaseline),
      (ratio) => `${(100 * ratio).toFixed(0)} %`,
    );
  return [
    `With ${formatNumber(plants)} plants, Plant Store serves ${firstPage} first pages, ${page} other pages or ${create} durable creates a second.`,
    `That is ${timesTypical(comparisons)} times as many as the same service on Express 5 and better-sqlite3.`,
    `Reads reach ${toBaseline(true)} of the rate of bare \`node:http\`. Writes reach ${toBaseline(false)} of its rate with a synced log.`,
  ].join('\n');
}

/** The figures of the first size, and the requests per second of the largest if there are several. */
export function readerTable([first, ...larger]: readonly Sized[]): string {
  const last = larger.at(-1);
  const header = [
    'Request',
    'Requests/s',
    'p50 ms',
    'p99 ms',
    'Ratio to Express 5',
    'Ratio to bare or synced log',
    ...(last === undefined ? [] : [`Requests/s, ${formatNumber(last.plants)} plants`]),
  ];
  const ofLast = last && compareWorkloads(last.measured);
  const rows = compareWorkloads(first?.measured ?? []).map(
    ({ title, service, toTypical, toBaseline }, at) => [
      title,
      formatMeasured(service.requestsPerSecond),
      formatMeasured(service.p50Ms),
      formatMeasured(service.p99Ms),
      formatMeasured(toTypical),
      formatMeasured(toBaseline),
      ...(ofLast === undefined
        ? []
        : [formatMeasured(ofLast[at]?.service.requestsPerSecond ?? NaN)]),
    ],
  );
  return table(header, rows);
}

function range(values: readonly number[], format: (value: number) => string): string {
  const [least, most] = [format(Math.min(...values)), format(Math.max(...values))];
  return least === most ? least : `${least} to ${most}`;
}
