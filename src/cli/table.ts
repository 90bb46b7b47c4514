/**
 * The tables of all commands. Text of other people cannot change how a terminal shows a table.
 */
import { printable } from '../client/printable.ts';
import { widthOf } from './terminal.ts';

const maxColumnWidth = 60;

type Cell = string | number | readonly string[] | undefined;

/** Cells in the order of the columns, or by the names of the columns. */
export type Rows<Column extends string> = readonly (
  readonly Cell[] | Readonly<Partial<Record<Column, Cell>>>
)[];

/**
 * Returns a function that formats rows, the first time below the header. The first rows set the widths of the columns,
 * so any number of rows needs little memory.
 */
export function createTable<Column extends string>(
  columns: readonly Column[],
): (rows: Rows<Column>) => string {
  let widths: readonly number[] | undefined;
  return (rows) => {
    const lines = rows.map((row) => {
      const cells = 'map' in row ? row : columns.map((column) => row[column]);
      return cells.map((cell) => printable(String(cell ?? '')));
    });
    if (widths === undefined) lines.unshift(columns.map(headingOf));
    widths ??= columns.map((_, at) => {
      const widest = lines.reduce((width, line) => Math.max(width, widthOf(line[at] ?? '')), 0);
      return Math.min(widest, maxColumnWidth);
    });
    return lines.map((line) => aligned(line, widths ?? [])).join('\n');
  };
}

export function tableOf<Column extends string>(
  columns: readonly Column[],
  rows: Rows<Column>,
): string {
  return createTable(columns)(rows);
}

/** "DELETED AT" for `deletedAt`. */
function headingOf(column: string): string {
  return column.replaceAll(/(?<=[a-z])[A-Z]/g, ' $&').toUpperCase();
}

function aligned(line: readonly string[], widths: readonly number[]): string {
  const cells = line.map((cell, at) => {
    return cell + ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(cell)));
  });
  return cells.join('  ').trimEnd();
}
