/**
 * Lists plants page by page, so that any number of them needs little memory.
 */
import { InvalidArgumentError, Option, type Command } from '@commander-js/extra-typings';
import type { DeletedPlant, Plant } from '../../client/client.ts';
import { byteOrderMark, writeCsv } from '../../client/csv.ts';
import { plantFields, shownFields } from '../../plants/fields.ts';
import type { PlantField } from '../../plants/plant.ts';
import { sorts } from '../../plants/scans.ts';
import { parseId } from '../options.ts';
import { io, print, printAll } from '../output.ts';
import { jsonLines, printableJson, tableOfPages } from '../terminal.ts';
import { onService, serviceCommand } from '../service.ts';

/** Number of plants per request, and in memory. */
const pagePlants = 1_000;

/** What is shown of a plant, or of a deleted one. */
type Row = Partial<Plant & DeletedPlant>;
type Column = keyof Row;
type Pages = AsyncIterable<readonly Row[]>;

const deletedColumns: readonly Column[] = [...plantFields, 'owner', 'deletedAt', 'deletedBy'];

export function addListCommand(plants: Command): void {
  serviceCommand(plants, 'list', [
    'plant-store plants list --tag indoor',
    'plant-store plants list --search lodz --sort name',
    'plant-store plants list --tag indoor --count',
    'plant-store plants list --fields id,name --json | jq ".[].name"',
    'plant-store plants list --csv > plants.csv',
    'plant-store plants list --deleted',
  ])
    .description('list plants: a table on a terminal, otherwise a line of JSON for each plant')
    .addOption(
      new Option(
        '--fields <list>',
        `fields in their order, separated by commas: ${shownFields.join(', ')}`,
      )
        .argParser(parseFields)
        .default([...plantFields], plantFields.join(',')),
    )
    .option('--tag <text>', 'only plants with exactly this tag')
    .option('--search <text>', 'only plants whose name or tag contains this text, in any case')
    .addOption(
      new Option(
        '--deleted',
        'only deleted plants that you can restore, the newest first',
      ).conflicts(['fields', 'tag', 'search', 'sort', 'count']),
    )
    .addOption(
      new Option('--sort <order>', 'sort by name, or from Z to A with -name').choices(sorts),
    )
    .addOption(new Option('--count', 'print only the number of plants').conflicts(['csv', 'limit']))
    .option('--limit <number>', 'maximum number of plants', parseId)
    .addOption(new Option('--csv', 'write CSV').conflicts('json'))
    .action(
      onService(async (store, options) => {
        const { csv, deleted, count, fields, tag, search: q, sort, limit = Infinity } = options;
        if (count) return print(String(await store.count({ tag, q })));
        const pageSize = Math.min(limit, pagePlants);
        const rows = deleted
          ? store.listDeleted({ pageSize })
          : store.list({ fields, tag, q, sort, pageSize });
        const pages = pagesOf(rows, limit);
        const columns = deleted ? deletedColumns : fields;
        if (csv) return printAll(csvOf(pages, columns));
        if (options.json) return printAll(jsonOf(pages));
        return printAll(io.stdout.isTTY ? tableOfPages(columns, pages) : jsonLines(pages));
      }),
    );
}

function parseFields(text: string): PlantField[] {
  const wanted = text.split(',').map((one) => one.trim());
  const fields = wanted.flatMap((one) => shownFields.find((field) => field === one) ?? []);
  if (fields.length < wanted.length || new Set(fields).size < wanted.length) {
    throw new InvalidArgumentError(`Use one or more of ${shownFields.join(', ')}, each once.`);
  }
  return fields;
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
  yield (io.stdout.isTTY ? '' : byteOrderMark) + writeCsv(columns);
  for await (const page of pages) {
    // A server can send anything in place of a text.
    const cellOf = (row: Row, column: Column) => String(row[column] ?? '');
    yield page.map((row) => writeCsv(columns.map((column) => cellOf(row, column)))).join('');
  }
}
