/**
 * Reads plants to import from a CSV or JSON file.
 */
import { readCsv, separatorOf, unguardFormulas, type CsvRecord } from './csv.ts';
import type { NewPlant, PlantField } from './types.ts';

/** A row of the file: the plant in it, or why there is none. `line` counts from 1. */
export type ImportRow = { line: number; plant: NewPlant } | { line: number; fault: string };

export interface ImportFile {
  format: 'csv' | 'json';
  rows: readonly ImportRow[];
}

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
export function readFile(content: string): ImportFile {
  const text = content.replace(/^\u{feff}/u, '');
  if (text.trim() === '') throw new InvalidFile('The file is empty.');
  if (/^\s*[[{]/.test(text)) return { format: 'json', rows: readJson(text) };
  const [header, ...records] = readCsv(text, separatorOf(text));
  if (header === undefined || 'fault' in header) {
    throw new InvalidFile('The quotes in line 1 do not match. The first line names the columns.');
  }
  const columns = columnsOf(header.fields);
  const rows = records.filter(isFilled).map((record) => rowOfRecord(record, columns));
  return { format: 'csv', rows };
}

const fields: readonly string[] = ['name', 'tag', 'id'];
/** The page adds these to the refused rows that it saves. */
const ignoredColumns: readonly string[] = ['line', 'reason'];

/** The names of columns in any case. Throws InvalidFile if one is not known: a misspelled one must not lose data. */
function columnsOf(header: readonly string[]): string[] {
  const known = [...fields, ...ignoredColumns];
  const names = header.map((column) => {
    const name = column.trim().toLowerCase();
    return known.includes(name) ? name : column;
  });
  const unknown = names.filter((name) => !known.includes(name));
  const repeated = names.filter((name, at) => names.indexOf(name) < at);
  const fix = 'Use the columns name, tag and id in the first line; only name is required.';
  const list = (some: string[]) => some.map((name) => `"${name}"`).join(', ');
  if (!names.includes('name')) {
    throw new InvalidFile(`No column is "name"; the first line has ${list(names)}. ${fix}`);
  }
  if (unknown.length > 0) throw new InvalidFile(`Unknown column: ${list(unknown)}. ${fix}`);
  if (repeated.length > 0) throw new InvalidFile(`Repeated column: ${list(repeated)}. ${fix}`);
  return names;
}

function rowOfRecord(record: CsvRecord, columns: readonly string[]): ImportRow {
  if ('fault' in record) return record;
  const { line, fields: cells } = record;
  if (cells.slice(columns.length).some((cell) => cell !== '')) {
    const fault = `The row has ${cells.length} fields, but the first line has ${columns.length}. Put a field that contains a separator in quotes.`;
    return { line, fault };
  }
  const cellOf = (field: PlantField) => cells[columns.indexOf(field)] ?? '';
  const [name, tag] = [unguardFormulas(cellOf('name')), unguardFormulas(cellOf('tag'))];
  const plant = { name, ...(tag !== '' && { tag }) };
  const id = cellOf('id');
  if (id === '') return { line, plant };
  const isExact = /^[1-9]\d*$/.test(id) && Number.isSafeInteger(Number(id));
  return isExact ? { line, plant: { ...plant, id: Number(id) } } : { line, fault: invalidId };
}

/** Spreadsheets end a file with empty lines, or with lines of separators. */
function isFilled(record: CsvRecord): boolean {
  return 'fault' in record || record.fields.some((field) => field !== '');
}

const invalidId = `"id" must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}.`;

/** An array, one object, or one object on each line. */
function readJson(text: string): ImportRow[] {
  const isArray = /^\s*\[/.test(text);
  try {
    return rowsIn(isArray ? text : `[${text}]`);
  } catch (cause) {
    if (isArray) throw new InvalidFile(`The file is not valid JSON${placeOf(cause)}.`, { cause });
  }
  return text.split(/\r\n|\r|\n/).flatMap((content, at) => {
    const line = at + 1;
    try {
      return rowsIn(`[${content}]`).map((row) => ({ ...row, line }));
    } catch {
      return [{ line, fault: 'The line is not valid JSON.' }];
    }
  });
}

/** The rows of an array. Throws a SyntaxError. */
function rowsIn(text: string): ImportRow[] {
  const values: readonly unknown[] = JSON.parse(text);
  const elements = elementsOf(text);
  return values.map((value, at) => rowOf(value, elements[at] ?? { line: 1, members: 0 }));
}

/** The service checks the fields, so that every field of the object reaches it. */
function rowOf(value: unknown, { line, members }: Element): ImportRow {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { line, fault: 'A row must be a JSON object with the fields name, tag and id.' };
  }
  if (Object.keys(value).length !== members) return { line, fault: 'A field is repeated.' };
  return { line, plant: value as NewPlant }; // the service checks it
}

interface Element {
  line: number;
  /** Number of fields, repeated ones included. JSON.parse drops those. */
  members: number;
}

/** Where each element of an array begins. The text is valid JSON. */
function elementsOf(text: string): Element[] {
  const elements: Element[] = [];
  let [line, depth] = [1, 0];
  let element: Element | undefined;
  for (const [token] of text.matchAll(
    /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+|\r\n|\r|\n/g,
  )) {
    if (/[\r\n]/.test(token)) {
      line++;
      continue;
    }
    if (token === ']' || token === '}') depth--;
    if (depth === 1 && token === ',') element = undefined;
    else if (depth > 0 && element === undefined) elements.push((element = { line, members: 0 }));
    if (depth === 2 && token === ':' && element) element.members++;
    if (token === '[' || token === '{') depth++;
  }
  return elements;
}

/** Where the text stops being JSON, if the engine reports it. */
function placeOf(error: unknown): string {
  const [, line] = /\bline (\d+)/.exec(String(error)) ?? [];
  return line === undefined ? '' : `: see line ${line}`;
}
