/**
 * The text of a token: `plant_`, 32 random bytes in base62, and the CRC-32 of those base62
 * characters in base62. The prefix lets a secret scanner find a leak, the checksum lets the service
 * refuse a typo without asking the storage. No I/O here; only the hash ever reaches a storage.
 */
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const prefix = 'plant_';
const secretBytes = 32;
const secretChars = 43; // 62^43 is the first power above 2^256
const checksumChars = 6; // and 62^6 the first above 2^32
const shape = new RegExp(`^${prefix}[${alphabet}]{${secretChars + checksumChars}}$`);

const tokenLike = new RegExp(`${prefix}[${alphabet}]{16,}`, 'g');

/** Bytes of the hash that a token is stored and looked up under. */
export const tokenHashBytes = 32;
/** Characters of a token's public id: the first 8 bytes of its hash in hexadecimal. */
const tokenIdChars = 16;

/** A new token: 55 characters, 256 random bits. */
export function makeToken(): string {
  const secret = secretOf(BigInt(`0x${randomBytes(secretBytes).toString('hex')}`));
  return prefix + secret + checksumOf(secret);
}

/** True where `text` has a token's form and its checksum holds; says nothing about who has it. */
export function isToken(text: string): boolean {
  if (!shape.test(text)) return false;
  return text.endsWith(checksumOf(text.slice(prefix.length, -checksumChars)));
}

/** The text without what may be a token: whoever pastes one in a wrong place does not get it back. */
export function withoutTokens(text: string): string {
  return text.replaceAll(tokenLike, `${prefix}...`);
}

/** SHA-256 of the token's text: the only thing that is stored of it. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** What people name a token by. It is part of the hash, so it tells nothing about the token. */
export function tokenId(tokenHash: Uint8Array): string {
  return Buffer.from(tokenHash).toString('hex', 0, tokenIdChars / 2);
}

/** True for text that tokenId() may have given. */
export function isTokenId(text: string): boolean {
  return /^[0-9a-f]+$/.test(text) && text.length === tokenIdChars;
}

/** The last hash whose token has this id; before every hash for an empty id. */
export function lastHashOf(id: string): Buffer {
  return id === ''
    ? Buffer.alloc(0)
    : Buffer.concat([Buffer.from(id, 'hex')], tokenHashBytes).fill(0xff, tokenIdChars / 2);
}

function secretOf(value: bigint): string {
  let text = '';
  for (let rest = value; text.length < secretChars; rest /= 62n) {
    text = alphabet.charAt(Number(rest % 62n)) + text;
  }
  return text;
}

// Not the same code: every request with a token comes here, and BigInt would triple its cost.
function checksumOf(secret: string): string {
  let text = '';
  for (let rest = crc32(secret); text.length < checksumChars; rest = Math.floor(rest / 62)) {
    text = alphabet.charAt(rest % 62) + text;
  }
  return text;
}
