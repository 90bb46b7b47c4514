/**
 * The tables of all commands. Text of other people cannot change how a terminal shows a table.
 */
import { printable } from '../client/printable.ts';
import { widthOf } from './terminal.ts';

const maxColumnWidth = 60;

type Rows = readonly (readonly (string | number)[])[];

/**
 * Returns a function that formats rows, the first time below the header. The first rows set the widths of the columns,
 * so any number of rows needs little memory.
 */
export function createTable(header: readonly string[]): (rows: Rows) => string {
  let widths: readonly number[] | undefined;
  return (rows) => {
    const cells = rows.map((row) => row.map((cell) => printable(String(cell))));
    const lines = widths === undefined ? [header, ...cells] : cells;
    widths ??= header.map((_, at) => {
      const widest = lines.reduce((width, line) => Math.max(width, widthOf(line[at] ?? '')), 0);
      return Math.min(widest, maxColumnWidth);
    });
    return lines.map((line) => aligned(line, widths ?? [])).join('\n');
  };
}

export function tableOf(header: readonly string[], rows: Rows): string {
  return createTable(header)(rows);
}

function aligned(line: readonly string[], widths: readonly number[]): string {
  const cells = line.map((cell, at) => {
    return cell + ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(cell)));
  });
  return cells.join('  ').trimEnd();
}
