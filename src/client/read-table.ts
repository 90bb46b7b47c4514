/**
 * Reads the rows of a table as people keep it: with a title above it, columns in their own words, and columns that no
 * plant has. Which column is the name is never guessed.
 */
import { unguardFormulas, type CsvRecord } from './csv.ts';
import { textFields, type NewPlant } from './types.ts';

/** What an imported plant can have, in the order of the columns that the page shows and saves. */
export const importedFields = [...textFields, 'id'] as const;
export type ImportedField = (typeof importedFields)[number];

/** What there is for a field: a text or a number of a column. */
type ByField<Value> = Partial<Record<ImportedField, Value>>;

/** A row of the file: the plant in it, or why there is none. Elements of a JSON array have no `line`. */
export type ImportRow = { line?: number | undefined } & (
  { plant: NewPlant } | { fault: string; content: ByField<string> }
);

export interface Table {
  records: readonly CsvRecord[];
  /** The index of the record that names the columns. Undefined if each record is a plant. */
  header: number | undefined;
  /** The index of the column of each field. Somebody has to choose the name if it is undefined. */
  columns: ByField<number>;
}

/** A title is at most so high. */
const maxHeader = 20;

/** The page adds these to the refused rows that it saves. */
const ignoredColumns: readonly string[] = ['line', 'reason'];

/** Finds the header and the columns with the words, which are by default those of the fields, in any case. */
export function tableOf(records: readonly CsvRecord[], words: ByField<string> = {}): Table {
  const wordOf = (field: ImportedField) => wordIn(words[field] ?? field);
  const wanted = importedFields.map(wordOf);
  const heads = records.slice(0, maxHeader).map((record) => cellsOf(record).map(wordIn));
  const widths = heads.map((cells) => cells.filter((cell) => cell !== '').length);
  const known = heads.map((cells, at) => {
    // A row above that is as wide can be a plant, and this one a plant with such a name.
    const isTop = Math.max(-1, ...widths.slice(0, at)) < (widths[at] ?? 0);
    const isHeader = isTop && cells.includes(wordOf('name'));
    return isHeader ? wanted.filter((word) => cells.includes(word)).length : 0;
  });
  const most = Math.max(0, ...known);
  const header = most > 0 ? known.indexOf(most) : likelyHeader(widths);
  const columns: ByField<number> = {};
  for (const field of importedFields) {
    const cells = heads[header] ?? [];
    const at = cells.indexOf(wordOf(field));
    if (at !== -1 && at === cells.lastIndexOf(wordOf(field))) columns[field] = at;
  }
  return { records, header, columns };
}

/** The first record that is about as wide as the table, because a title above it is not. */
function likelyHeader(widths: readonly number[]): number {
  return widths.findIndex((width) => width > Math.max(...widths) / 2);
}

/** "B: Bezeichnung" for each column, with its letter in a spreadsheet. */
export function columnLabels({ records, header }: Table): string[] {
  const headings = headingsOf({ records, header });
  let width = 0;
  for (const record of records) {
    width = Math.max(width, cellsOf(record).findLastIndex((cell) => cell.trim() !== '') + 1);
  }
  return Array.from({ length: width }, (_, at) => {
    const heading = headings[at] ?? '';
    return heading === '' ? letterOf(at) : `${letterOf(at)}: ${heading}`;
  });
}

/** What is not read of the table, as sentences. */
export function omissionsOf(table: Table): string[] {
  const { records, header = 0, columns } = table;
  const used = Object.values(columns);
  const headings = headingsOf(table);
  const left = columnLabels(table).filter((_, at) => {
    const isHeaded = table.header === undefined || (headings[at] ?? '') !== '';
    return isHeaded && !used.includes(at) && !ignoredColumns.includes(wordIn(headings[at] ?? ''));
  });
  const title = records.slice(0, header).map((record) => cellsOf(record).join(' ').trim());
  return [
    ...title.map((text) => `Skipped above the header: ${text}.`),
    ...(left.length > 0 ? [`Columns that are left out: ${left.join(', ')}.`] : []),
  ];
}

/** The rows below the header. */
export function rowsOf({ records, header, columns }: Table): ImportRow[] {
  const headings = headingsOf({ records, header });
  const used = Object.values(columns);
  const isLost = (cell: string, at: number) =>
    cell.trim() !== '' && (headings[at] ?? '') === '' && !used.includes(at);
  return records.slice(header === undefined ? 0 : header + 1).map((record): ImportRow => {
    const { line } = record;
    if ('fault' in record) return { line, fault: record.fault, content: { name: record.text } };
    const cells = record.fields;
    const lost = header === undefined ? -1 : cells.findIndex(isLost);
    if (lost !== -1) {
      const fault = `Column ${letterOf(lost)} of the row has no heading. Give the column a heading, or put a field that contains a separator in quotes.`;
      return { line, fault, content: { name: cells.join(', ') } };
    }
    const content: ByField<string> = {};
    for (const field of importedFields) {
      const at = columns[field];
      if (at !== undefined) content[field] = unguardFormulas(cells[at] ?? '');
    }
    const { name = '', id: idText = '', ...texts } = content;
    const plant: NewPlant = { name, ...texts };
    const id = idText.trim();
    if (id === '') return { line, plant };
    const isExact = /^[1-9]\d*$/.test(id) && Number.isSafeInteger(Number(id));
    return isExact
      ? { line, plant: { ...plant, id: Number(id) } }
      : { line, fault: invalidId, content };
  });
}

const invalidId = `"id" must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER}.`;

/** Spreadsheets end a file with empty lines, or with lines of separators. */
export function isFilled(record: CsvRecord): boolean {
  return 'fault' in record || record.fields.some((field) => field.trim() !== '');
}

function letterOf(at: number): string {
  const letter = String.fromCharCode(65 + (at % 26));
  return at < 26 ? letter : letterOf(Math.floor(at / 26) - 1) + letter;
}

function headingsOf({ records, header }: Pick<Table, 'records' | 'header'>): string[] {
  const record = header === undefined ? undefined : records[header];
  return record === undefined ? [] : cellsOf(record).map((cell) => unguardFormulas(cell).trim());
}

function cellsOf(record: CsvRecord): readonly string[] {
  return 'fault' in record ? [] : record.fields;
}

function wordIn(text: string): string {
  return text.trim().toLowerCase();
}
