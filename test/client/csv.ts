/**
 * CSV, as spreadsheets and people write it.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { readCsv, separatorOf, unguardFormulas, writeCsv } from '../../src/client/csv.ts';

const field = fc.string({
  unit: fc.constantFrom('a', '🌱', '"', ',', ';', '\t', ' ', '\n', '\r\n', "'", '=', '-'),

  maxLength: 6,
});
const table = fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { maxLength: 8 });
const separator = fc.constantFrom(',', ';', '\t');
const lineBreak = fc.constantFrom('\n', '\r\n', '\r');

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

describe('reading CSV', () => {
  it('returns every field as it was written, and the line on which its row begins', () => {
    fc.assert(
      fc.property(
        table,
        separator,
        lineBreak,
        fc.boolean(),
        (rows, between, end, endsWithBreak) => {
          const lines = rows.map((row) => row.map(quoted).join(between));
          const text = lines.join(end) + (endsWithBreak && rows.length > 0 ? end : '');
          let line = 1;
          const expected = rows.map((fields, at) => {
            const record = { line, fields };
            line += `${lines[at]}${end}`.split(/\r\n|\r|\n/).length - 1;
            return record;
          });
          assert.deepEqual([...readCsv(text, between)], expected);
        },
      ),
    );
  });

  it('refuses only the row with a fault in its quotes', () => {
    for (const row of ['"Monstera" 2,indoor', '5" pot,indoor', '"Monstera,indoor']) {
      const text = `name,tag\n${row}\nFicus,"a ""b"""\nAloe,c\n`;
      const records = [...readCsv(text, ',')];
      assert.deepEqual(records[0], { line: 1, fields: ['name', 'tag'] });
      assert.deepEqual(Object.keys(records[1] ?? {}), ['line', 'fault', 'text']);
      assert.deepEqual(records.slice(2), [
        { line: 3, fields: ['Ficus', 'a "b"'] },
        { line: 4, fields: ['Aloe', 'c'] },
      ]);
    }
  });

  it('takes linear time for a large file with a fault in each row', { timeout: 10_000 }, () => {
    const text = '"a,b\n'.repeat(200_001);
    assert.ok([...readCsv(text, ',')].every((record) => 'fault' in record));
  });

  it('refuses only the row whose quote is never closed, before millions of others', () => {
    const records = readCsv(`"a\n${'""\n'.repeat(10_000_000)}`, ',');
    assert.deepEqual(Object.keys(records.next().value ?? {}), ['line', 'fault', 'text']);
    assert.deepEqual(records.next().value, { line: 2, fields: [''] });
  });

  it('finds the separator of most lines', () => {
    assert.equal(separatorOf('name;tag\na,b,c,d;e'), ';');
    assert.equal(separatorOf('name\ttag\n'), '\t');
    assert.equal(separatorOf('"a;b;c",tag\n'), ',');
    assert.equal(separatorOf('name\n'), ',');
    assert.equal(separatorOf('a, b, c\n\nname;price\nFern;3,50\nOak;4\n'), ';');
  });
});

describe('writing CSV', () => {
  it('loses nothing when it is read again', () => {
    fc.assert(
      fc.property(fc.array(field, { minLength: 1 }), (fields) => {
        const [record, ...others] = readCsv(writeCsv(fields), ',');
        assert.ok(record && 'fields' in record && others.length === 0);
        assert.deepEqual(record.fields.map(unguardFormulas), fields);
      }),
    );
  });

  it('leaves no cell that a spreadsheet would run as a formula', () => {
    for (const start of ['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
      const fields = [
        `${start}cmd`,
        `a;${start}cmd`,
        `a; "${start}cmd`,
        `'${start}cmd`,
        ` ${start}cmd`,
      ];
      const written = writeCsv(fields);
      const [record] = readCsv(written, ',');
      assert.ok(record && 'fields' in record);
      // With another separator, spreadsheets split without regard to the quotes.
      for (const cell of [...record.fields, ...written.split(';')]) {
        assert.doesNotMatch(cell, new RegExp(`^["\\s]*[${start}]`, 'u'), written);
      }
    }
  });
});
