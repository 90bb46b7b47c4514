/**
 * The hash functions by which Citus distributes rows: those of PostgreSQL for hash indexes (`hash_bytes` in
 * src/common/hashfn.c), after the public lookup3 of Bob Jenkins. The results are signed 32-bit numbers.
 */

const initial = 0x9e3779b9 + 3_923_095;
const blockBytes = 12;
const word = 2 ** 32;

// Reused, because allocating takes longer than hashing.
const folded = Buffer.alloc(4);
const rest = Buffer.alloc(blockBytes);

/** The hash of a bigint; `value` is a safe integer from 0. */
export function hashBigint(value: number): number {
  folded.writeInt32LE(value ^ Math.floor(value / word));
  return hashBytes(folded);
}

/** The hash of a text in UTF-8. */
export function hashText(value: string): number {
  return hashBytes(Buffer.from(value));
}

function hashBytes(bytes: Buffer): number {
  let a = (initial + bytes.length) | 0;
  let b = a;
  let c = a;
  let at = 0;
  for (; bytes.length - at >= blockBytes; at += blockBytes) {
    a += bytes.readInt32LE(at);
    b += bytes.readInt32LE(at + 4);
    c += bytes.readInt32LE(at + 8);
    a = (a - c) ^ rotate(c, 4);
    c = (c + b) | 0;
    b = (b - a) ^ rotate(a, 6);
    a = (a + c) | 0;
    c = (c - b) ^ rotate(b, 8);
    b = (b + a) | 0;
    a = (a - c) ^ rotate(c, 16);
    c = (c + b) | 0;
    b = (b - a) ^ rotate(a, 19);
    a = (a + c) | 0;
    c = (c - b) ^ rotate(b, 4);
    b = (b + a) | 0;
  }
  bytes.copy(rest.fill(0), 0, at);
  a += rest.readInt32LE(0);
  b += rest.readInt32LE(4);
  c += rest.readInt32LE(8) << 8; // the lowest byte is for the length
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
