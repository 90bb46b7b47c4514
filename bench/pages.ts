/**
 * Writes the figures of a run between pairs of comments, so that nobody copies figures by hand: all tables to
 * bench/results/README.md and, for SQLite, three sentences and one table to docs/explanation/performance.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { formatMeasured, table } from './figures.ts';
import type { Measured } from './load.ts';
import type { StorageName, SystemName } from './systems.ts';

export interface Report {
  storage: StorageName;
  /** The command, the machine and the versions. */
  setting: string;
  /** Markdown of all tables, with headings of the third level. */
  tables: string;
  plants: number;
  measured: readonly Measured[];
}

/** Throws if a figure of the summary or a comment in a page is missing. */
export async function writePages(root: string, report: Report): Promise<void> {
  const { storage, setting, tables } = report;
  await replaceFigures(join(root, 'bench/results/README.md'), storage, [setting, tables]);
  if (storage !== 'sqlite') return;
  const parts = [...summaryOf(report), setting];
  await replaceFigures(join(root, 'docs/explanation/performance.md'), 'summary', parts);
}

/** The workloads of the summary. Changes are compared with the synced log, because bare stores nothing. */
const summarized = [
  { workload: 'list-20', title: 'First page of a list', baseline: 'bare' },
  { workload: 'random-page', title: 'Any page of a list', baseline: 'bare' },
  { workload: 'create-32', title: 'Create, 32 clients', baseline: 'synced log' },
  { workload: 'create-256', title: 'Create, 256 clients', baseline: 'synced log' },
  { workload: 'delete', title: 'Delete, 32 clients', baseline: 'synced log' },
] as const;

function summaryOf({ plants, measured }: Report): [sentences: string, table: string] {
  const all = summarized.map(({ workload, title, baseline }) => {
    const isService = (each: Measured) => each.workload === workload && each.system === 'service';
    const service = measured.find(isService);
    if (service === undefined) throw new Error(`${workload} was not measured`);
    const { typical, [baseline]: toBaseline } = service.ratioTo;
    return { ...service, title, typical, baseline, toBaseline };
  });
  const [firstPage, page, , create] = all.map((each) => formatMeasured(each.requestsPerSecond));
  const times = range(all.map(({ typical }) => typical.toFixed(1)));
  const percent = (name: SystemName) => {
    const ratios = all.flatMap((each) => (each.baseline === name ? [each.toBaseline] : []));
    return `${range(ratios.map((ratio) => `${(100 * ratio).toFixed(0)} %`))} of`;
  };
  const sentences = [
    `With ${plants.toLocaleString('en-US')} plants, Plant Store serves ${firstPage} first pages, ${page} other pages or ${create} durable creates a second.`,
    `That is ${times} times as many as the same service on Express 5 and better-sqlite3.`,
    `Reads reach ${percent('bare')} the rate of bare \`node:http\`. Writes reach ${percent('synced log')} its rate with a synced log.`,
  ];
  const header = [
    'Request',
    'Requests/s',
    'p50 ms',
    'p99 ms',
    'Ratio to Express 5',
    'Ratio to bare or synced log',
  ];
  const rows = all.map(({ title, requestsPerSecond, p50Ms, p99Ms, typical, toBaseline }) => [
    title,
    ...[requestsPerSecond, p50Ms, p99Ms, typical, toBaseline].map(formatMeasured),
  ]);
  return [sentences.join('\n'), table(header, rows)];
}

/** From the least to the most, such as "1.7 to 3.4". */
function range(values: readonly string[]): string {
  const inOrder = values.toSorted((a, b) => Number.parseFloat(a) - Number.parseFloat(b));
  return [...new Set([inOrder[0], inOrder.at(-1)])].join(' to ');
}

/** Replaces the Markdown between the two comments in a page. */
async function replaceFigures(file: string, name: string, parts: string[]): Promise<void> {
  const [begin, end] = [`<!-- figures: ${name} -->\n`, `<!-- end of figures: ${name} -->\n`];
  const page = readFileSync(file, 'utf8');
  const [from, to] = [page.indexOf(begin) + begin.length, page.indexOf(end)];
  if (!page.includes(begin) || to < from)
    throw new Error(`${file} has no comments "figures: ${name}"`);
  const text = `${page.slice(0, from)}\n${parts.join('\n\n')}\n\n${page.slice(to)}`;
  const options = await resolveConfig(file, { editorconfig: false });
  writeFileSync(file, await format(text, { ...options, filepath: file }));
}
