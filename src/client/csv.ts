/**
 * Reads and writes CSV (RFC 4180). No library does this within a few KiB: decision 30 compares them.
 */

/** A row of the file. `line` is the line on which it begins, from 1. */
export type CsvRecord = { line: number; fields: string[] } | { line: number; fault: string };

const separators = [',', ';', '\t'] as const;
export type Separator = (typeof separators)[number];

const fieldEnds: Record<Separator, RegExp> = {
  ',': /[,\r\n]|$/g,
  ';': /[;\r\n]|$/g,
  '\t': /[\t\r\n]|$/g,
};

/**
 * Reads the records. A record with unmatched quotes is a fault, and reading continues on the next line. So a quote
 * that is not closed does not swallow the rows after it.
 */
export function* readCsv(text: string, separator: Separator): Generator<CsvRecord, void> {
  let [start, line] = [0, 1];
  while (start < text.length) {
    const record = readRecord(text, start, separator);
    const end = afterLineBreak(text, record?.end ?? endOfLine(text, start));
    yield record ? { line, fields: record.fields } : { line, fault: unmatchedQuotes };
    line += text.slice(start, end).match(/\r\n|\r|\n/g)?.length ?? 0;
    start = end;
  }
}

/** The separator that the first line has most of; a comma if it has none. */
export function separatorOf(text: string): Separator {
  const header = text.slice(0, endOfLine(text, 0)).replaceAll(/"[^"]*"/g, '');
  const count = (separator: string) => header.split(separator).length;
  return separators.reduce((best, one) => (count(one) > count(best) ? one : best));
}

/** Writes a record, with a line break at the end. */
export function writeCsv(fields: readonly (string | number)[]): string {
  return `${fields.map(writeField).join(',')}\n`;
}

/**
 * Spreadsheets run text that begins with one of these characters as a formula, and names can come from other users.
 * An apostrophe before the character prevents that. It is also needed after a semicolon, because spreadsheets in many
 * countries split there. Apostrophes that are already there do not count, so `unguardFormulas` can undo this.
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

const unmatchedQuotes =
  'The quotes do not match. Put the field in quotes, and double each quote inside it.';

/** The record at `start`, and where its last field ends. Undefined if its quotes do not match. */
function readRecord(text: string, start: number, separator: Separator) {
  const fields: string[] = [];
  for (let at = start; ; at++) {
    const field = text[at] === '"' ? readQuoted(text, at) : readPlain(text, at, separator);
    if (field === undefined) return undefined;
    fields.push(field.value);
    at = field.end;
    if (at === text.length || text[at] === '\r' || text[at] === '\n') return { fields, end: at };
    if (text[at] !== separator) return undefined; // text after a closing quote
  }
}

function readPlain(text: string, start: number, separator: Separator) {
  const end = indexOf(fieldEnds[separator], text, start);
  const value = text.slice(start, end);
  return value.includes('"') ? undefined : { value, end };
}

function readQuoted(text: string, start: number) {
  for (let at = start + 1; ; at += 2) {
    at = text.indexOf('"', at);
    if (at === -1) return undefined;
    if (text[at + 1] === '"') continue;
    return { value: text.slice(start + 1, at).replaceAll('""', '"'), end: at + 1 };
  }
}

function endOfLine(text: string, start: number): number {
  return indexOf(/[\r\n]|$/g, text, start);
}

function afterLineBreak(text: string, at: number): number {
  return text.startsWith('\r\n', at) ? at + 2 : Math.min(at + 1, text.length);
}

/** Where the pattern, which also matches the end of the text, matches next. */
function indexOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.exec(text)?.index ?? text.length;
}
