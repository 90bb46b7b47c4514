import assert from 'node:assert/strict';
import { it } from 'node:test';
import { maxSafeNat, sample } from 'fast-check';
import { hashBigint } from '../../src/postgres/citus/hash.ts';
import { query } from '../support/postgres.ts';
import { testDatabase } from '../support/storages.ts';

it('PostgreSQL: hashes are those of the server, which place rows on the nodes of a cluster', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  const numbers = sample(maxSafeNat(), 1_000);
  const [server] = await query(
    url,
    `SELECT array_agg(hashint8(n) ORDER BY at) AS numbers
     FROM unnest(ARRAY[${numbers.join()}]::bigint[]) WITH ORDINALITY AS given (n, at)`,
  );
  assert.deepEqual(server, { numbers: numbers.map(hashBigint) });
});
