/**
 * Files of plants, in every form that the import reads.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeText, InvalidFile, readRows } from '../../src/client/read-rows.ts';

const expected = [
  { line: 2, plant: { name: 'Monstera', tag: 'indoor' } },
  { line: 3, plant: { name: 'Ficus', id: 40 } },
];

describe('a CSV file', () => {
  const files = {
    plain: 'name,tag,id\nMonstera,indoor,\nFicus,,40\n',
    'from a spreadsheet, with a byte order mark, CRLF, quotes and empty rows':
      '\u{feff}"Name";"Tag";"ID"\r\n"Monstera";"indoor";\r\n"Ficus";"";40\r\n;;\r\n;;\r\n',
    'with tabs, and its columns in another order': 'id\ttag\tname\n\tindoor\tMonstera\n40\t\tFicus',
    'with empty columns that have no name': ',name,tag,,id, \n,Monstera,indoor\n,Ficus,,,40,\n',
    'with short and with padded rows': 'name,tag,id\nMonstera,indoor\nFicus,,40,,\n',
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

  const refused = {
    'Monstera,indoor\n':
      /^The first line has unknown or repeated columns "Monstera", "indoor"\. It must have name, /,
    'tag,id\n': /^The first line has only the columns "tag", "id"\. It must have name, /,
    'name,tga,colour\n':
      /^The first line has unknown or repeated columns "tga", "colour"\. It must have name, /,
    'name,tag,NAME\n':
      /^The first line has unknown or repeated columns "NAME"\. It must have name, /,
  };
  for (const [header, message] of Object.entries(refused)) {
    it(`is refused with the columns ${header.trim()}`, () => {
      assert.throws(() => readRows(`${header}x,y,z\n`), { name: 'InvalidFile', message });
    });
  }
});

describe('a JSON file', () => {
  it('is read with a line for each plant, or as an array, whose rows have no line', () => {
    const lines = '\n{"name": "Monstera", "tag": "indoor"}\r\n{"name": "Ficus", "id": 40}\n';
    assert.deepEqual(readRows(lines), expected);
    const array = '[\n{"name": "Monstera", "tag": "indoor"},\n{"name": "Ficus", "id": 40}]';
    assert.deepEqual(
      readRows(array),
      expected.map(({ plant }) => ({ plant })),
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
  it('can be UTF-8 or UTF-16 with a byte order mark', () => {
    const text = 'name\n🌱\n';
    const utf16 = new Uint8Array(Buffer.from(`\u{feff}${text}`, 'utf16le'));
    assert.equal(decodeText(utf16), text);
    assert.equal(decodeText(new Uint8Array(Buffer.from(utf16).swap16())), text);
    assert.equal(decodeText(new TextEncoder().encode(`\u{feff}${text}`)), text);
  });

  it('is refused in another encoding, and if it is empty', () => {
    assert.throws(() => decodeText(Uint8Array.of(0x6e, 0xe9)), InvalidFile);
    assert.throws(() => readRows(' \n'), InvalidFile);
  });
});
