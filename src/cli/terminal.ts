/**
 * Text and tables on a terminal. Text of other people cannot change how they are shown.
 */
import stringWidth from 'string-width';
import { hidden, printable } from '../client/printable.ts';

/** Where no terminal says how much fits. */
const maxColumnWidth = 60;
const minColumnWidth = 8;
/** Ids, which people copy, and times are never cut. */
const uncut = /^(?:id|token|at|created|expires|lastUse|\w+At)$/;
const separator = '  ';
let terminalWidth = Infinity;
const graphemes = new Intl.Segmenter();
const emoji = /\p{RGI_Emoji}|\p{Emoji_Presentation}/gv;

/** Makes tables as narrow as the stream, if that is a terminal. */
export function fitTables({ isTTY, columns = Infinity }: { isTTY?: boolean; columns?: number }) {
  terminalWidth = isTTY ? columns : Infinity;
}

/** Text of one or more lines as the stream shows it: as it is, unless the stream is a terminal. */
export function shownOn({ isTTY }: { isTTY?: boolean }, text: string): string {
  return isTTY ? text.replaceAll(/[^\n]+/g, printable) : text;
}

/** JSON with the same meaning, in which every character is visible. Each half of a surrogate pair is one escape. */
export function printableJson(value: unknown): string {
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replaceAll(hidden, (text) => text.replaceAll(/[^]/g, escapeUnit));
}

export async function* jsonLines(
  pages: AsyncIterable<readonly object[]>,
): AsyncGenerator<string, void> {
  for await (const page of pages) yield page.map((row) => `${printableJson(row)}\n`).join('');
}

type Cell = string | number | readonly string[] | undefined;

/** The rows of a table: cells by the names of their columns. */
export type Rows<Column extends string> = readonly Readonly<Partial<Record<Column, Cell>>>[];

export function tableOf<Column extends string>(
  columns: readonly Column[],
  rows: Rows<Column>,
): string {
  return createTable(columns)(rows);
}

/**
 * Formats pages of rows, and ends each with a line break. The first page sets the widths of the columns, so any number
 * of rows needs little memory.
 */
export async function* tableOfPages<Column extends string>(
  columns: readonly Column[],
  pages: AsyncIterable<Rows<Column>>,
): AsyncGenerator<string, void> {
  const linesOf = createTable(columns);
  for await (const rows of pages) yield `${linesOf(rows)}\n`;
}

/** Returns a function that formats rows, the first time below the header. */
function createTable<Column extends string>(columns: readonly Column[]) {
  const headings = columns.map(headingOf);
  let widths: readonly number[] | undefined;
  return (rows: Rows<Column>): string => {
    const lines = rows.map((row) => columns.map((column) => printable(String(row[column] ?? ''))));
    const isFirst = widths === undefined;
    widths ??= fitted(
      columns,
      headings.map((heading, at) => {
        const cells = [heading, ...lines.map((line) => line[at] ?? '')];
        const widest = cells.reduce((width, cell) => Math.max(width, widthOf(cell)), 0);
        return Math.min(widest, terminalWidth === Infinity ? maxColumnWidth : widest);
      }),
    );
    if (rows.length > 0 && totalOf(widths) > terminalWidth) {
      const records = lines.map((line) => recordOf(headings, line));
      return [...(isFirst ? [] : ['']), ...records].join('\n\n');
    }
    return [...(isFirst ? [headings] : []), ...lines]
      .map((line) => aligned(line, widths ?? []))
      .join('\n');
  };
}

/** Narrows the widest columns until the terminal shows each row on a line. If it is too narrow, returns a larger width. */
function fitted(columns: readonly string[], widths: readonly number[]): readonly number[] {
  const [widest] = columns
    .map((column, at) => ({ at, width: uncut.test(column) ? 0 : (widths[at] ?? 0) }))
    .toSorted((a, b) => b.width - a.width);
  const isNarrow = widest === undefined || widest.width <= minColumnWidth;
  if (isNarrow || totalOf(widths) <= terminalWidth) return widths;
  return fitted(columns, widths.with(widest.at, widest.width - 1));
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + separator.length + width, -separator.length);
}

/** A row of a table that is too wide: a line for each cell that is not empty. */
function recordOf(headings: readonly string[], line: readonly string[]): string {
  const width = Math.max(...headings.map(widthOf));
  const cells = line.map((cell, at) => (headings[at] ?? '').padEnd(width) + separator + cell);
  return cells.filter((_, at) => line[at] !== '').join('\n');
}

/** "DELETED AT" for `deletedAt`. */
function headingOf(column: string): string {
  return column.replaceAll(/(?<=[a-z])[A-Z]/g, ' $&').toUpperCase();
}

function aligned(line: readonly string[], widths: readonly number[]): string {
  const cells = line.map((text, at) => {
    const width = widths[at] ?? 0;
    const cell = terminalWidth === Infinity ? text : cut(text, width);
    return cell + ' '.repeat(Math.max(0, width - widthOf(cell)));
  });
  return cells.join(separator).trimEnd();
}

function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let start = '';
  for (const { segment } of graphemes.segment(text)) {
    if (widthOf(start + segment) >= width) break;
    start += segment;
  }
  return `${start}…`;
}

/** The number of columns that a terminal uses for the text. The library does not know newer emoji. */
function widthOf(text: string): number {
  return stringWidth(text.replaceAll(emoji, '  '));
}
