/**
 * Plants as text, page by page, so that any number of them needs little memory.
 */
import type { Plant } from '../../client/client.ts';
import { writeCsv } from '../../client/csv.ts';
import type { PlantField } from '../../plant.ts';
import { printable, printableJson, widthOf } from './printable.ts';

export type Format = 'table' | 'json' | 'csv';

/** Plants with the fields that were requested. */
export type Pages = AsyncIterable<readonly Partial<Plant>[]>;

/** A table on a terminal and JSON elsewhere, unless an option selects another. */
export function chooseFormat({ json, csv }: { json?: boolean; csv?: boolean }): Format {
  if (csv) return 'csv';
  return json || !process.stdout.isTTY ? 'json' : 'table';
}

export const formats: Record<
  Format,
  (pages: Pages, fields: readonly PlantField[]) => AsyncGenerator<string, void>
> = { table: tableOf, json: jsonOf, csv: csvOf };

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
    yield page.map((plant) => writeCsv(fields.map((field) => plant[field] ?? ''))).join('');
  }
}

const maxColumnWidth = 60;

/** The first page sets the widths of the columns. */
async function* tableOf(pages: Pages, fields: readonly PlantField[]): AsyncGenerator<string, void> {
  let widths: number[] | undefined;
  for await (const page of pages) {
    const rows = page.map((plant) => fields.map((field) => printable(String(plant[field] ?? ''))));
    if (widths === undefined) {
      const header = fields.map((field) => field.toUpperCase());
      widths = header.map((_, at) =>
        [header, ...rows].reduce((width, row) => Math.max(width, widthOf(row[at] ?? '')), 0),
      );
      rows.unshift(header);
    }
    yield rows.map((row) => lineOf(row, widths ?? [])).join('');
  }
}

function lineOf(row: readonly string[], widths: readonly number[]): string {
  const cells = row.map((cell, at) => {
    const width = Math.min(widths[at] ?? 0, maxColumnWidth);
    return cell + ' '.repeat(Math.max(0, width - widthOf(cell)));
  });
  return `${cells.join('  ').trimEnd()}\n`;
}
