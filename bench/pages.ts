/**
 * Writes the figures of a run to docs/ and bench/results/, between pairs of comments, so that nobody copies figures by hand. The
 * tables go to bench/results/README.md. For SQLite, it also writes the summary.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { compareWorkloads, readerTable, sentences, type Sized } from './summary.ts';
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

/** Throws if a figure of the summary or a comment in a page is missing. */
export async function writePages(root: string, report: Report): Promise<void> {
  const { storage, setting, tables } = report;
  await replaceFigures(join(root, 'bench/results/README.md'), storage, `${setting}\n\n${tables}`);
  if (storage === 'sqlite') await writeSummary(join(root, 'docs'), report);
}

async function writeSummary(docs: string, { setting, sizes }: Report): Promise<void> {
  const plants = sizes[0]?.plants ?? Number.NaN;
  const comparisons = compareWorkloads(sizes[0]?.measured ?? []);
  const parts = [sentences(plants, comparisons), readerTable(sizes), setting];
  await replaceFigures(join(docs, 'explanation/performance.md'), 'summary', parts.join('\n\n'));
}

/** Replaces the Markdown between the two comments in a page. */
async function replaceFigures(file: string, name: string, markdown: string): Promise<void> {
  const [begin, end] = [`<!-- figures: ${name} -->\n`, `<!-- end of figures: ${name} -->\n`];
  const page = readFileSync(file, 'utf8');
  const [from, to] = [page.indexOf(begin) + begin.length, page.indexOf(end)];
  if (!page.includes(begin) || to < from)
    throw new Error(`${file} has no comments "figures: ${name}"`);
  const text = `${page.slice(0, from)}\n${markdown}\n\n${page.slice(to)}`;
  const options = await resolveConfig(file, { editorconfig: false });
  writeFileSync(file, await format(text, { ...options, filepath: file }));
}
