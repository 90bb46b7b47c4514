/**
 * The hash function by which Citus distributes rows: that of PostgreSQL for hash indexes (`hash_bytes_uint32` in
 * src/common/hashfn.c), after the public lookup3 of Bob Jenkins. The result is a signed 32-bit number.
 */

const initial = (0x9e3779b9 + 3_923_095 + 4) | 0;
const word = 2 ** 32;

/** The hash of a bigint; `value` is a safe integer from 0. */
export function hashBigint(value: number): number {
  let a = initial + (value ^ Math.floor(value / word));
  let b = initial;
  let c = initial;
  c = (c ^ b) - rotate(b, 14);
  a = (a ^ c) - rotate(c, 11);
  b = (b ^ a) - rotate(a, 25);
  c = (c ^ b) - rotate(b, 16);
  a = (a ^ c) - rotate(c, 4);
  b = (b ^ a) - rotate(a, 14);
  c = (c ^ b) - rotate(b, 24);
  return c | 0;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
