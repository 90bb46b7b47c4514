import assert from 'node:assert/strict';
import { it } from 'node:test';
import { maxSafeNat, sample, string } from 'fast-check';
import { hashBigint, hashText } from '../../src/postgres/hash.ts';
import { query } from '../support/postgres.ts';
import { testDatabase } from '../support/storages.ts';

it('PostgreSQL: hashes are those of the server, which place rows on the nodes of a cluster', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  const numbers = sample(maxSafeNat(), 1_000);
  const names = sample(string({ unit: 'grapheme', maxLength: 200 }), 1_000).map(withoutNul);
  const [server] = await query(
    url,
    `SELECT (SELECT array_agg(hashint8(n) ORDER BY at) FROM unnest(${arrayOf(numbers)}::bigint[]) WITH ORDINALITY AS given (n, at)) AS numbers,
            (SELECT array_agg(hashtext(t) ORDER BY at) FROM unnest(${arrayOf(names)}::text[]) WITH ORDINALITY AS given (t, at)) AS names`,
  );
  assert.deepEqual(server, { numbers: numbers.map(hashBigint), names: names.map(hashText) });
});

/** PostgreSQL stores no NUL. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}

function arrayOf(values: readonly (number | string)[]): string {
  return `ARRAY[${values.map((value) => `'${String(value).replaceAll("'", "''")}'`).join()}]`;
}
