/**
 * Plants as text, page by page, so that any number of them needs little memory.
 */
import type { Plant } from '../../client/client.ts';
import { writeCsv } from '../../client/csv.ts';
import type { PlantField } from '../../plant.ts';
import { io } from '../output.ts';
import { printableJson } from '../terminal.ts';
import { Table } from '../table.ts';

export type Format = 'table' | 'json' | 'csv';

/** Plants with the fields that were requested. */
export type Pages = AsyncIterable<readonly Partial<Plant>[]>;

/** A table on a terminal and JSON elsewhere, unless an option selects another. */
export function chooseFormat({ json, csv }: { json?: boolean; csv?: boolean }): Format {
  if (csv) return 'csv';
  return json || !io.stdout.isTTY ? 'json' : 'table';
}

export const formats: Record<
  Format,
  (pages: Pages, fields: readonly PlantField[]) => AsyncGenerator<string, void>
> = { table: tablesOf, json: jsonOf, csv: csvOf };

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

async function* tablesOf(
  pages: Pages,
  fields: readonly PlantField[],
): AsyncGenerator<string, void> {
  const table = new Table(fields.map((field) => field.toUpperCase()));
  for await (const page of pages) {
    const rows = page.map((plant) => fields.map((field) => plant[field] ?? ''));
    yield `${table.lines(rows).join('\n')}\n`;
  }
}
