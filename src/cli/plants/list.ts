/**
 * Lists plants page by page, so that any number of them needs little memory.
 */
import type { DeletedPlant, Plant, PlantStore } from '../../client/client.ts';
import { writeCsv } from '../../client/csv.ts';
import type { PlantField } from '../../plants/plant.ts';
import { io, printAll } from '../output.ts';
import { createTable } from '../table.ts';
import { printableJson } from '../terminal.ts';
import { withStore, type StoreOptions } from './store.ts';

/** Number of plants per request, and in memory. */
const pagePlants = 1_000;

/** What is shown of a plant, or of a deleted one. */
type Row = Partial<Plant & DeletedPlant>;
type Column = keyof Row;
type Pages = AsyncIterable<readonly Row[]>;

const deletedColumns: readonly Column[] = ['id', 'name', 'tag', 'owner', 'deletedAt', 'deletedBy'];

interface ListOptions extends StoreOptions {
  fields: readonly PlantField[];
  tag?: string | undefined;
  search?: string | undefined;
  deleted?: true | undefined;
  limit?: number | undefined;
  csv?: true | undefined;
}

/** Prints a table on a terminal and JSON elsewhere, unless an option selects another format. */
export async function listPlants(options: ListOptions): Promise<void> {
  const { json, csv, deleted, fields } = options;
  const format = csv ? csvOf : json || !io.stdout.isTTY ? jsonOf : tableOf;
  await withStore(options, (store) =>
    deleted
      ? printAll(format(deletedPagesOf(store, options), deletedColumns))
      : printAll(format(pagesOf(store, options), fields)),
  );
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

async function* deletedPagesOf(store: PlantStore, { limit = Infinity }: ListOptions): Pages {
  let left = limit;
  let page: DeletedPlant[] = [];
  for await (const plant of store.listDeleted({ pageSize: Math.min(left, pagePlants) })) {
    page.push(plant);
    left--;
    if (left > 0 && page.length < pagePlants) continue;
    yield page;
    page = [];
    if (left === 0) return;
  }
  yield page;
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

async function* csvOf(pages: Pages, columns: readonly Column[]): AsyncGenerator<string, void> {
  yield writeCsv(columns);
  for await (const page of pages) {
    const cellOf = (row: Row, column: Column) => String(row[column] ?? '');
    yield page.map((row) => writeCsv(columns.map((column) => cellOf(row, column)))).join('');
  }
}

async function* tableOf(pages: Pages, columns: readonly Column[]): AsyncGenerator<string, void> {
  const linesOf = createTable(columns.map(headingOf));
  for await (const page of pages) {
    const rows = page.map((row) => columns.map((column) => row[column] ?? ''));
    yield `${linesOf(rows)}\n`;
  }
}

/** "DELETED AT" for `deletedAt`. */
function headingOf(column: Column): string {
  return column.replace(/[A-Z]/, ' $&').toUpperCase();
}
