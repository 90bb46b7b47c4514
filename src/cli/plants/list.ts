/**
 * Lists plants page by page, so that any number of them needs little memory.
 */
import type { Plant, PlantStore } from '../../client/client.ts';
import { writeCsv } from '../../client/csv.ts';
import type { PlantField } from '../../plants/plant.ts';
import { io, printAll } from '../output.ts';
import { createTable } from '../table.ts';
import { printableJson } from '../terminal.ts';
import { withStore, type StoreOptions } from './store.ts';

/** Number of plants per request, and in memory. */
const pagePlants = 1_000;

/** Plants with the fields that were requested. */
type Pages = AsyncIterable<readonly Partial<Plant>[]>;

interface ListOptions extends StoreOptions {
  fields: readonly PlantField[];
  tag?: string | undefined;
  search?: string | undefined;
  limit?: number | undefined;
  csv?: true | undefined;
}

/** Prints a table on a terminal and JSON elsewhere, unless an option selects another format. */
export async function listPlants(options: ListOptions): Promise<void> {
  const { json, csv } = options;
  const format = csv ? csvOf : json || !io.stdout.isTTY ? jsonOf : tableOf;
  await withStore(options, (store) => printAll(format(pagesOf(store, options), options.fields)));
}

async function* pagesOf(
  store: PlantStore,
  { fields, tag, search: q, limit = Infinity }: ListOptions,
): Pages {
  let left = limit;
  const pages = store.pages({ fields, tag, q, pageSize: Math.min(left, pagePlants) });
  for await (const page of pages) {
    yield page.slice(0, left);
    left -= page.length;
    if (left <= 0) return;
  }
}

/** An array with a line for each plant. */
async function* jsonOf(pages: Pages): AsyncGenerator<string, void> {
  let before = '[\n';
  for await (const page of pages) {
    if (page.length === 0) continue;
    yield before + page.map((plant) => printableJson(plant)).join(',\n');
    before = ',\n';
  }
  yield before === ',\n' ? '\n]\n' : '[]\n';
}

async function* csvOf(pages: Pages, fields: readonly PlantField[]): AsyncGenerator<string, void> {
  yield writeCsv(fields);
  for await (const page of pages) {
    const cellOf = (plant: Partial<Plant>, field: PlantField) => String(plant[field] ?? '');
    yield page.map((plant) => writeCsv(fields.map((field) => cellOf(plant, field)))).join('');
  }
}

async function* tableOf(pages: Pages, fields: readonly PlantField[]): AsyncGenerator<string, void> {
  const linesOf = createTable(fields.map((field) => field.toUpperCase()));
  for await (const page of pages) {
    const rows = page.map((plant) => fields.map((field) => plant[field] ?? ''));
    yield `${linesOf(rows)}\n`;
  }
}
