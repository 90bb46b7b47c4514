/**
 * Reads the rows of a CSV or JSON file: the plants to import.
 */
import { readCsv, separatorOf, unguardFormulas, type CsvRecord } from './csv.ts';
import { optionalTexts, textFields, type NewPlant, type PlantField } from './types.ts';

/** A row of the file: the plant in it, or why there is none. Elements of a JSON array have no `line`, but their text. */
export type ImportRow = { line?: number | undefined } & (
  { plant: NewPlant } | { fault: string; text?: string }
);

/** The whole file cannot be imported. The message describes why, and how to fix it. */
export class InvalidFile extends Error {
  override readonly name = 'InvalidFile';
}

/** The text of a file in UTF-8, or in UTF-16 with a byte order mark. Throws InvalidFile. */
export function decodeText(bytes: Uint8Array<ArrayBuffer>): string {
  const mark = `${bytes[0]},${bytes[1]}`;
  const encoding = { '255,254': 'utf-16le', '254,255': 'utf-16be' }[mark] ?? 'utf-8';
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new InvalidFile('The file is not text in UTF-8. Save it as "CSV UTF-8" or as JSON.', {
      cause,
    });
  }
}

/** Reads a file of either format. Throws InvalidFile. */
export function readRows(content: string): ImportRow[] {
  const text = content.replace(/^\u{feff}/u, '');
  if (text.trim() === '') throw new InvalidFile('The file is empty.');
  if (/^\s*\[/.test(text)) return readArray(text);
  if (/^\s*\{/.test(text)) return readLines(text);
  const [header, ...records] = readCsv(text, separatorOf(text));
  if (header === undefined || 'fault' in header) {
    throw new InvalidFile('The quotes in line 1 do not match. The first line names the columns.');
  }
  const columns = columnsOf(header.fields);
  return records.filter(isFilled).map((record) => rowOfRecord(record, columns));
}

/** What an imported plant can have, in the order of the columns that the page shows and saves. */
export const importedFields = [...textFields, 'id'] as const;
const optionalFields = [...optionalTexts, 'id'].join(' and ');
/** The page adds these to the refused rows that it saves. */
const ignoredColumns: readonly string[] = ['line', 'reason'];

/**
 * Column names are case-insensitive, and spreadsheets add columns without a name. Throws InvalidFile for an unknown name:
 * a misspelled one must not lose data.
 */
function columnsOf(header: readonly string[]): string[] {
  const names = header.map((column) => column.trim().toLowerCase());
  const known = [...importedFields, ...ignoredColumns];
  const isBad = (name: string, at: number) =>
    name !== '' && (!known.includes(name) || names.indexOf(name) < at);
  const bad = header.filter((_, at) => isBad(names[at] ?? '', at));
  if (names.includes('name') && bad.length === 0) return names;
  const list = (bad.length > 0 ? bad : header).map((column) => `"${column.trim()}"`).join(', ');
  throw new InvalidFile(
    `The first line has ${bad.length > 0 ? 'unknown or repeated columns' : 'only the columns'} ${list}. It must have name, and can have ${optionalFields}, each once.`,
  );
}

function rowOfRecord(record: CsvRecord, columns: readonly string[]): ImportRow {
  if ('fault' in record) return record;
  const { line, fields: cells } = record;
  const unnamed = cells.findIndex((cell, at) => cell !== '' && (columns[at] ?? '') === '');
  if (unnamed !== -1) {
    const fault = `Field ${unnamed + 1} of the row has no column in the first line. Put a field that contains a separator in quotes.`;
    return { line, fault };
  }
  const cellOf = (field: PlantField) => cells[columns.indexOf(field)] ?? '';
  const textOf = (field: PlantField) => unguardFormulas(cellOf(field));
  const plant: NewPlant = { name: textOf('name') };
  for (const field of optionalTexts) if (textOf(field) !== '') plant[field] = textOf(field);
  const id = cellOf('id');
  if (id === '') return { line, plant };
  const isExact = /^[1-9]\d*$/.test(id) && Number.isSafeInteger(Number(id));
  return isExact ? { line, plant: { ...plant, id: Number(id) } } : { line, fault: invalidId };
}

/** Spreadsheets end a file with empty lines, or with lines of separators. */
function isFilled(record: CsvRecord): boolean {
  return 'fault' in record || record.fields.some((field) => field !== '');
}

const invalidId = `"id" must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER}.`;

function readArray(text: string): ImportRow[] {
  try {
    return parseArray(text);
  } catch (error) {
    if (error instanceof InvalidFile) throw error;
    const { message } = error as Error; // the functions of JSON throw nothing else
    throw new InvalidFile(`The file cannot be read as JSON: ${message}.`, { cause: error });
  }
}

/** An object on each line. */
function readLines(text: string): ImportRow[] {
  return text.split(/\r\n|\r|\n/).flatMap((content, at) => {
    const line = at + 1;
    try {
      return parseArray(`[${content}]`).map((row) => ({ ...row, line }));
    } catch {
      return [{ line, fault: 'The line is not valid JSON, or has a field twice.' }];
    }
  });
}

/** Throws an Error if the text is not JSON, or an object has a field twice. */
function parseArray(text: string): ImportRow[] {
  const values: readonly unknown[] = JSON.parse(text);
  // JSON.parse keeps only the last of two members with one name.
  if (membersIn(text) !== membersIn(JSON.stringify(values))) {
    throw new InvalidFile(
      'An object has the same field twice. To see which, save the file with one object per line.',
    );
  }
  return values.map(rowOf);
}

function membersIn(json: string): number {
  return json.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"/g, '').split(':').length;
}

/** Keeps every field of the object, because the service checks them. */
function rowOf(value: unknown): ImportRow {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const fault = `A row must be a JSON object with the fields ${textFields.join(', ')} and id.`;
    return { fault, text: JSON.stringify(value) };
  }
  return { plant: value as NewPlant }; // the service checks it
}
