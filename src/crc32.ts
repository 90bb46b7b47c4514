/**
 * CRC-32 (ISO 3309, the one of gzip) of ASCII text. node:zlib has it too, and takes 3 MiB to load.
 */
const polynomial = 0xedb88320; // bits in reverse

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ polynomial : rest >>> 1;
  return rest;
});

/** An integer from 0 to 2^32 - 1. */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let at = 0; at < text.length; at++) {
    crc = (crc >>> 8) ^ (table[(crc ^ text.charCodeAt(at)) & 0xff] ?? 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
