/**
 * The tables of all commands. On a terminal, what other people wrote cannot change what is shown.
 */
import { io } from './output.ts';
import { printable, widthOf } from './terminal.ts';

const maxColumnWidth = 60;

type Rows = readonly (readonly (string | number)[])[];

/** A table that is printed in parts, so that any number of rows needs little memory. */
export class Table {
  readonly #header: readonly string[];
  /** The first rows set the widths of the columns. */
  #widths: readonly number[] | undefined;

  constructor(header: readonly string[]) {
    this.#header = header;
  }

  /** The lines of the rows, the first time below the header. */
  lines(rows: Rows): string[] {
    const textOf = (cell: string | number) =>
      io.stdout.isTTY ? printable(String(cell)) : String(cell);
    const shown = rows.map((row) => row.map(textOf));
    if (this.#widths !== undefined) return shown.map((row) => this.#line(row));
    const all = [this.#header, ...shown];
    this.#widths = this.#header.map((_, at) => {
      const widest = all.reduce((width, row) => Math.max(width, widthOf(row[at] ?? '')), 0);
      return Math.min(widest, maxColumnWidth);
    });
    return all.map((row) => this.#line(row));
  }

  #line(row: readonly string[]): string {
    const cells = row.map((cell, at) => {
      return cell + ' '.repeat(Math.max(0, (this.#widths?.[at] ?? 0) - widthOf(cell)));
    });
    return cells.join('  ').trimEnd();
  }
}

export function tableOf(header: readonly string[], rows: Rows): string {
  return new Table(header).lines(rows).join('\n');
}
