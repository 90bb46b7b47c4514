/**
 * Writes the figures of a run to docs/, each between marks of its own, so that nobody copies any by hand:
 * the tables of a storage to performance-tables.md, and for SQLite the summary and its chart as well.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { chartOf, chartTitle } from './chart.ts';
import { shown } from './figures.ts';
import { comparisonsOf, readerTable, sentences, type Sized } from './summary.ts';
import type { StorageName } from './systems.ts';

export interface Report {
  storage: StorageName;
  /** The command, the machine and the versions. */
  setting: string;
  /** Markdown of all tables, with headings of the third level. */
  tables: string;
  /** By ascending number of plants; at least one. */
  sizes: readonly Sized[];
}

/** Throws if a figure of the summary is missing, or a mark in a page. */
export async function writePages(docs: string, report: Report): Promise<void> {
  const { storage, setting, tables } = report;
  await replaceFigures(join(docs, 'performance-tables.md'), storage, `${setting}\n\n${tables}`);
  if (storage === 'sqlite') await writeSummary(docs, report);
}

async function writeSummary(docs: string, { setting, sizes }: Report): Promise<void> {
  const plants = sizes[0]?.plants ?? Number.NaN;
  const comparisons = comparisonsOf(sizes[0]?.measured ?? []);
  const image = `![${chartTitle(comparisons)}. The table below has the figures.](performance.svg)`;
  const parts = [sentences(plants, comparisons), image, readerTable(sizes), setting];
  await replaceFigures(join(docs, 'performance.md'), 'summary', parts.join('\n\n'));
  writeFileSync(join(docs, 'performance.svg'), chartOf(shown(plants), comparisons));
}

/** Puts Markdown between two comments of a page. */
async function replaceFigures(file: string, name: string, markdown: string): Promise<void> {
  const [begin, end] = [`<!-- figures: ${name} -->\n`, `<!-- end of figures: ${name} -->\n`];
  const page = readFileSync(file, 'utf8');
  const [from, to] = [page.indexOf(begin) + begin.length, page.indexOf(end)];
  if (!page.includes(begin) || to < from) throw new Error(`${file} has no marks for ${name}`);
  const text = `${page.slice(0, from)}\n${markdown}\n\n${page.slice(to)}`;
  const options = await resolveConfig(file, { editorconfig: false });
  writeFileSync(file, await format(text, { ...options, filepath: file }));
}
