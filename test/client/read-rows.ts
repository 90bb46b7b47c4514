/**
 * Files of plants, in every form that the import reads.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InvalidFile, readFile } from '../../src/client/read-rows.ts';
import { columnLabels, omissionsOf, rowsOf, tableOf } from '../../src/client/read-table.ts';

const bytesOf = (text: string, encoding?: BufferEncoding) =>
  new Uint8Array(Buffer.from(text, encoding));

function tableIn(text: string, words?: Parameters<typeof tableOf>[1]) {
  const file = readFile(bytesOf(text));
  assert.ok('records' in file, text);
  return tableOf(file.records, words);
}

/** The rows, if nobody chooses a column. */
function readRows(text: string) {
  const file = readFile(bytesOf(text));
  return 'rows' in file ? file.rows : rowsOf(tableOf(file.records));
}

const expected = [
  { line: 2, plant: { name: 'Monstera', tag: 'indoor' } },
  { line: 3, plant: { name: 'Ficus', tag: '', id: 40 } },
];

describe('a CSV file', () => {
  const files = {
    plain: 'name,tag,id\nMonstera,indoor,\nFicus,,40\n',
    'from a spreadsheet, with a byte order mark, CRLF, quotes and empty rows':
      '\u{feff}"Name";"Tag";"ID"\r\n"Monstera";"indoor";\r\n"Ficus";"";40\r\n;;\r\n;;\r\n',
    'with tabs, and its columns in another order': 'id\ttag\tname\n\tindoor\tMonstera\n40\t\tFicus',
    'with empty columns that have no name': ',name,tag,,id, \n,Monstera,indoor\n,Ficus,,,40,\n',
    'with short and with padded rows': 'name,tag,id\nMonstera,indoor\nFicus,,40,,\n ,, \n',
    'with another separator in its texts':
      'name;tag;id;price\nMonstera;indoor;;"3,50"\nFicus;;40;4,00\n',
  };
  for (const [what, text] of Object.entries(files)) {
    it(`is read: ${what}`, () => assert.deepEqual(readRows(text), expected));
  }

  it('keeps white space and quotes of a name, and counts lines in quotes', () => {
    assert.deepEqual(readRows('name,tag\n" 5"" pot ",a\n"two\r\nlines",b\nlast,c'), [
      { line: 2, plant: { name: ' 5" pot ', tag: 'a' } },
      { line: 3, plant: { name: 'two\r\nlines', tag: 'b' } },
      { line: 5, plant: { name: 'last', tag: 'c' } },
    ]);
  });

  it('has a fault for an id that is not exact, and for a field without a column', () => {
    const rows = 'a,1e3\nb,9007199254740993\nc,01\nd,-1\ne,1.0\nf,1,x\ng,1,,x\n';
    const faults = readRows(`name,id,\n${rows}`);
    assert.equal(faults.length, 7);
    for (const row of faults) assert.ok('fault' in row, JSON.stringify(row));
  });

  it('has its header below a title, and columns that no plant has', () => {
    const table = tableIn(
      'Bestandsliste\n"Stand, Lager";3.11.\n;;\nPreis;Name;Menge;Tag;reason\n3,50;Fern;2;a;\n',
    );
    assert.deepEqual(rowsOf(table), [{ line: 5, plant: { name: 'Fern', tag: 'a' } }]);
    assert.deepEqual(omissionsOf(table), [
      'Skipped above the header: Bestandsliste.',
      'Skipped above the header: Stand, Lager 3.11..',
      'Columns that are left out: A: Preis, C: Menge.',
    ]);
  });

  it('has no header below a row that is as wide, because that can be a plant', () => {
    for (const text of ['Fern\nRose\nName\nOak\n', 'Fern;herbs\nTag;Name\nOak;\n']) {
      const table = tableIn(text);
      assert.deepEqual([table.header, table.columns], [0, {}], text);
      assert.deepEqual(
        omissionsOf({ ...table, header: undefined, columns: { name: 0, tag: 1 } }),
        [],
      );
    }
  });

  it('has no name until somebody chooses its column', () => {
    for (const header of ['Bezeichnung;Tag', 'Monstera;indoor', 'name;name', 'tag;id']) {
      assert.equal(tableIn(`Liste\n\n${header}\nx;y\n`).columns.name, undefined, header);
    }
    const text = 'Liste\n\nBezeichnung;Tag;\nx;y;\n';
    assert.deepEqual(columnLabels(tableIn(text)), ['A: Bezeichnung', 'B: Tag']);
    assert.deepEqual(rowsOf(tableIn(text, { name: 'bezeichnung' })), [
      { line: 4, plant: { name: 'x', tag: 'y' } },
    ]);
    const table = tableIn('Monstera;indoor\nFicus;\n');
    table.header = undefined;
    table.columns = { name: 0, tag: 1 };
    assert.deepEqual(rowsOf(table), [
      { line: 1, plant: { name: 'Monstera', tag: 'indoor' } },
      { line: 2, plant: { name: 'Ficus', tag: '' } },
    ]);
  });

  it('has the content of a row that cannot be read', () => {
    assert.deepEqual(
      readRows('name,tag,id\n"Fern,a\nOak,b,x\nFicus, large,a,,1\n').map((row) => ({
        ...row,
        fault: '',
      })),
      [
        { line: 2, fault: '', content: { name: '"Fern,a' } },
        { line: 3, fault: '', content: { name: 'Oak', tag: 'b', id: 'x' } },
        { line: 4, fault: '', content: { name: 'Ficus,  large, a, , 1' } },
      ],
    );
  });
});

describe('a JSON file', () => {
  it('is read with a line for each plant, or as an array, whose rows have no line', () => {
    const lines = '\n{"name": "Monstera", "tag": "indoor"}\r\n{"name": "Ficus", "id": 40}\n';
    const plants = [expected[0], { line: 3, plant: { name: 'Ficus', id: 40 } }];
    assert.deepEqual(readRows(lines), plants);
    const array = '[\n{"name": "Monstera", "tag": "indoor"},\n{"name": "Ficus", "id": 40}]';
    assert.deepEqual(
      readRows(array),
      plants.map((row) => ({ plant: row?.plant })),
    );
  });

  it('reaches the service with every field, so that no typo loses data', () => {
    const value = { name: 5, tga: 'indoor', nested: { a: [{}, ':,"'] } };
    assert.deepEqual(readRows(JSON.stringify([value], null, 2)), [{ plant: value }]);
    assert.deepEqual(readRows(JSON.stringify(value)), [{ line: 1, plant: value }]);
  });

  it('has a fault for what is no object, for a repeated field and for a malformed line', () => {
    for (const text of ['["Monstera"]', '[null]', '[[]]']) {
      assert.ok('fault' in (readRows(text)[0] ?? {}), text);
    }
    const lines = '{"name":"a"}\n{"name":\n{"name":"b","name":"c"}\n{"name":"d"}';
    assert.deepEqual(
      readRows(lines).map((row) => ['plant' in row, row.line]),
      [
        [true, 1],
        [false, 2],
        [false, 3],
        [true, 4],
      ],
    );
  });

  it('is refused if its array is malformed, with the place, or has a field twice', () => {
    const refused = {
      '[\n{"name": "a"}\n{"name": "b"}]':
        /^The file cannot be read as JSON: .* \(line 3 column 1\)\.$/,
      '[{"name":"a","tag":"x:","tag":"y"}]':
        /^An object has the same field twice\. To see which, save the file with one object per line\.$/,
    };
    for (const [text, message] of Object.entries(refused)) {
      assert.throws(() => readRows(text), { name: 'InvalidFile', message });
    }
  });
});

describe('the text of a file', () => {
  const text = 'name\nKüche – Möhre\n';
  const encoded = {
    'UTF-8': [bytesOf(text), bytesOf(`\u{feff}${text}`)],
    'UTF-16': [
      bytesOf(`\u{feff}${text}`, 'utf16le'),
      new Uint8Array(Buffer.from(`\u{feff}${text}`, 'utf16le').swap16()),
    ],
    'Windows-1252': [bytesOf(text.replace('–', '\u0096'), 'latin1')],
  };
  for (const [encoding, files] of Object.entries(encoded)) {
    it(`can be ${encoding}`, () => {
      for (const bytes of files) {
        const file = readFile(bytes);
        assert.equal(file.encoding, encoding);
        assert.ok('records' in file);
        assert.deepEqual(file.records[1], { line: 2, fields: ['Küche – Möhre'] });
      }
    });
  }

  it('is refused if it is damaged UTF-8, rather than read as another encoding', () => {
    const damaged = Buffer.concat([bytesOf('name\nMüller\r\nM'), Buffer.of(0xfc), bytesOf('ller')]);
    const cut = bytesOf('name\r\nKüche\nŽito 日本').subarray(0, -1);
    const marked = bytesOf('\u{feff}name\n\nM');
    for (const bytes of [damaged, cut, Buffer.concat([marked, Buffer.of(0xfc)])]) {
      assert.throws(() => readFile(new Uint8Array(bytes)), {
        name: 'InvalidFile',
        message:
          /^The file is UTF-8, but line 3 has a damaged character, or the file is cut there\. /,
      });
    }
  });

  it('is refused if it is no text, or empty', () => {
    for (const bytes of [bytesOf('name\nn\0'), Uint8Array.of(0xe9, 0), bytesOf(' \n')]) {
      assert.throws(() => readFile(bytes), InvalidFile);
    }
    for (const start of ['504b0304', 'd0cf11e0']) {
      const workbook = new Uint8Array(Buffer.from(start, 'hex'));
      assert.throws(() => readFile(workbook), /save it as "CSV UTF-8"/);
    }
  });
});
