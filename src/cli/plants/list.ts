/**
 * Lists plants page by page, so that any number of them needs little memory.
 */
import type { DeletedPlant, Plant } from '../../client/client.ts';
import { writeCsv } from '../../client/csv.ts';
import { plantFields } from '../../plants/fields.ts';
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

const deletedColumns: readonly Column[] = [...plantFields, 'owner', 'deletedAt', 'deletedBy'];

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
  const { json, csv, deleted, fields, tag, search: q, limit = Infinity } = options;
  const format = csv ? csvOf : json || !io.stdout.isTTY ? jsonOf : tableOf;
  const pageSize = Math.min(limit, pagePlants);
  await withStore(options, (store) => {
    const rows = deleted
      ? store.listDeleted({ pageSize })
      : store.list({ fields, tag, q, pageSize });
    return printAll(format(pagesOf(rows, limit), deleted ? deletedColumns : fields));
  });
}

/** The first `limit` rows. Only the first page can be empty. */
async function* pagesOf(rows: AsyncIterable<Row>, limit: number): Pages {
  let count = 0;
  let page: Row[] = [];
  for await (const row of rows) {
    page.push(row);
    count++;
    if (count < limit && page.length < pagePlants) continue;
    yield page;
    page = [];
    if (count === limit) return;
  }
  if (count === 0 || page.length > 0) yield page;
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
