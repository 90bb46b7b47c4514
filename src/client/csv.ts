/**
 * Reads and writes CSV (RFC 4180). No library does this within a few KiB: decision 30 compares them.
 */

/** A row of the file. `line` is the line on which it begins, from 1. */
export type CsvRecord =
  { line: number; fields: string[] } | { line: number; fault: string; text: string };

const separators = [',', ';', '\t'] as const;
type Separator = (typeof separators)[number];

const unmatchedQuotes =
  'The quotes do not match. Put the field in quotes, and double each quote inside it.';

/**
 * Reads the records. A record with unmatched quotes is a fault, and reading continues on the next line. So a quote
 * that is not closed does not swallow the rows after it.
 */
export function* readCsv(text: string, separator: Separator): Generator<CsvRecord, void> {
  // A field in quotes or without any, and what ends it. The stack holds some million quotes, so their number is limited.
  const field = new RegExp(
    `(?:"([^"]*(?:""[^"]*){0,100000})"|([^"${separator}\\r\\n]*))(${separator}|\\r\\n|\\r|\\n|$)`,
    'y',
  );
  const restOfLine = /[^\r\n]*(?:\r\n|\r|\n|$)/y;
  let line = 1;
  for (let start = 0; start < text.length;) {
    const fields = readFields(field, text, start, separator);
    restOfLine.lastIndex = start;
    if (fields === undefined) restOfLine.test(text);
    const end = (fields ? field : restOfLine).lastIndex;
    yield fields
      ? { line, fields }
      : { line, fault: unmatchedQuotes, text: text.slice(start, end).trimEnd() };
    line += text.slice(start, end).match(/\r\n|\r|\n/g)?.length ?? 0;
    start = end;
  }
}

/** The fields of the record at `start`; undefined if its quotes do not match. `field` ends behind the record. */
function readFields(
  field: RegExp,
  text: string,
  start: number,
  separator: Separator,
): string[] | undefined {
  const fields: string[] = [];
  field.lastIndex = start;
  for (;;) {
    const [, quoted, plain = '', end] = field.exec(text) ?? [];
    if (end === undefined) return undefined;
    fields.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end !== separator) return fields;
  }
}

/** The separator of most of the first lines, and the most frequent one of those; a comma if there is none. */
export function separatorOf(text: string): Separator {
  const plain = text.slice(0, 20_000).replaceAll(/"[^"]*"/g, '');
  const lines = plain.split(/[\r\n]+/, 20);
  const score = (separator: string) => {
    const counts = lines.map((line) => line.split(separator).length - 1);
    const total = counts.reduce((sum, count) => sum + count);
    return counts.filter((count) => count > 0).length + total / (total + 1);
  };
  return separators.reduce((best, one) => (score(one) > score(best) ? one : best));
}

/** Begins a file for spreadsheets, because Excel reads one without it in another encoding. */
export const byteOrderMark = '\u{feff}';

/** Writes a record, with a line break at the end. */
export function writeCsv(fields: readonly (string | number)[]): string {
  return `${fields.map(writeField).join(',')}\n`;
}

/**
 * Spreadsheets run text that begins with one of these characters as a formula, unless an apostrophe precedes it. They
 * also do so after a semicolon, because spreadsheets in many countries split there. Apostrophes that are already there
 * get one more, so that `unguardFormulas` can undo this.
 */
const guarded = /((?:^|;)["\s]*)'('*[=+\-@＝＋－＠])/gu;
const formulas = /((?:^|;)["\s]*)('*[=+\-@＝＋－＠])/gu;

export function unguardFormulas(text: string): string {
  return text.replaceAll(guarded, '$1$2');
}

function writeField(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const text = value.replaceAll(formulas, "$1'$2");
  return /[",;\s]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
