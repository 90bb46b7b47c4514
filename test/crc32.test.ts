import assert from 'node:assert/strict';
import { it } from 'node:test';
import { crc32 as crc32OfZlib } from 'node:zlib';
import * as fc from 'fast-check';
import { crc32 } from '../src/crc32.ts';

it('is the CRC-32 of zlib', () => {
  assert.equal(crc32('123456789'), 0xcbf43926); // the check value of the catalogues
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), (text) => {
      assert.equal(crc32(text), crc32OfZlib(text));
    }),
  );
});
