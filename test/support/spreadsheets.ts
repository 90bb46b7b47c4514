/**
 * Tables as people save them. Each has the same two plants.
 */

export interface Spreadsheet {
  content: Buffer | string;
  /** What the first line is, if no heading names a field: somebody has to choose the columns, which are the first two. */
  firstLine?: 'header' | 'plant';
  /** How the command gets these columns. */
  options?: readonly string[];
  /** The beginning of what an import prints about how it has read the file. */
  note?: string;
}

export const spreadsheetPlants = [
  { name: 'Lauch', tag: '' },
  { name: 'Möhre', tag: 'Küche' },
];

export const spreadsheets: Readonly<Record<string, Spreadsheet>> = {
  'CSV of Excel in German': {
    content: Buffer.from('Name;Tag\r\nMöhre;Küche\r\nLauch;\r\n', 'latin1'),
    note: 'Read as Windows-1252.',
  },
  'Unicode text of Excel': {
    content: Buffer.from('\u{feff}Name\tTag\r\nMöhre\tKüche\r\nLauch\t\r\n', 'utf16le'),
    note: 'Read as UTF-16.',
  },
  'tabs of LibreOffice': { content: '"Name"\t"Tag"\n"Möhre"\t"Küche"\n"Lauch"\t\n' },
  'CSV UTF-8 of Excel': { content: '\u{feff}Name;Tag\r\nMöhre;Küche\r\nLauch;\r\n' },
  'a title': {
    content: 'Bestand, Stand 3.11.;\n;\nName;Tag\nMöhre;Küche\nLauch;\n',
    note: 'Skipped above the header: Bestand, Stand 3.11..',
  },
  'words of their own': {
    content: 'Bezeichnung;Gruppe\nMöhre;Küche\nLauch;\n',
    firstLine: 'header',
    options: ['--name-column', 'bezeichnung', '--tag-column', 'Gruppe'],
  },
  'no header': {
    content: 'Möhre;Küche\nLauch;\n',
    firstLine: 'plant',
    options: ['--name-column', 'A', '--tag-column', 'b'],
    note: 'No line has headings, so the first line is a plant too.',
  },
  'more columns': {
    content: 'Preis;Name;Tag\n3,50;Möhre;Küche\n;Lauch;\n',
    note: 'Columns that are left out: A: Preis.',
  },
  'empty columns and rows': {
    content: 'Name,Tag,,\nMöhre,Küche,,\nLauch,,,\n,,,\n , ,,\n',
  },
};
