/**
 * The text of a token: `plant_`, 32 random bytes in base62, and the CRC-32 of those base62 characters in
 * base62. Secret scanners find leaked tokens by the prefix. The service refuses typos by the checksum, without a
 * query. Only the hash of a token ever reaches a storage.
 */
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const prefix = 'plant_';
const secretBytes = 32;
const secretChars = 43; // 62^43 is the first power above 2^256
const checksumChars = 6; // and 62^6 the first above 2^32
const tokenPattern = new RegExp(`^${prefix}[${alphabet}]{${secretChars + checksumChars}}$`);

const tokenLikePattern = new RegExp(`${prefix}[${alphabet}]{16,}`, 'g');
/**
 * The header of a JWT is an object, so its base64 begins with that of `{"`. The lookarounds make the time linear: only
 * the start of a word is tried, and only if dots follow it.
 */
const jwtLikePattern =
  /(?<![\w-])(?=[\w-]{11,}\.[\w-]{8,}\.)([\w-]*?)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g;

/** Length of the hash that identifies a token in a storage. */
export const tokenHashBytes = 32;
/** Length of a token's public id: the first 8 bytes of its hash in hexadecimal. */
const tokenIdChars = 16;

/** A new token: 55 characters, 256 random bits. */
export function makeToken(): string {
  const secret = secretOf(BigInt(`0x${randomBytes(secretBytes).toString('hex')}`));
  return prefix + secret + checksumOf(secret);
}

/** Whether `text` has the form of a token and a valid checksum. Such a token need not exist. */
export function isToken(text: string): boolean {
  if (!tokenPattern.test(text)) return false;
  return text.endsWith(checksumOf(text.slice(prefix.length, -checksumChars)));
}

/** Why `text` is not a token; undefined if it can be one. Never quotes the text. */
export function tokenFault(text: string): string | undefined {
  const chars = prefix.length + secretChars + checksumChars;
  if (!text.startsWith(prefix)) return `it does not begin with ${prefix}`;
  if (text.length !== chars) return `it has ${text.length} characters instead of ${chars}`;
  if (!tokenPattern.test(text)) return 'it has a character that no token has';
  return isToken(text) ? undefined : 'its checksum is wrong, so it is mistyped or made up';
}

/** Removes anything that looks like a token or a JWT, so that no message repeats one from a wrong place. */
export function redactTokens(text: string): string {
  return text.replaceAll(tokenLikePattern, `${prefix}...`).replaceAll(jwtLikePattern, '$1eyJ...');
}

/** SHA-256 of the token's text. Nothing else of it is stored. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** The public id of a token. It is part of the hash, so it reveals nothing about the token. */
export function tokenId(tokenHash: Uint8Array): string {
  return Buffer.from(tokenHash).toString('hex', 0, tokenIdChars / 2);
}

/** Whether `text` has the form of a token's id. */
export function isTokenId(text: string): boolean {
  return /^[0-9a-f]+$/.test(text) && text.length === tokenIdChars;
}

/** The last possible hash with this id. For an empty id, a value before every hash. */
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

// Not shared with secretOf: every request with a token needs this, and BigInt takes three times as long.
function checksumOf(secret: string): string {
  let text = '';
  for (let rest = crc32(secret); text.length < checksumChars; rest = Math.floor(rest / 62)) {
    text = alphabet.charAt(rest % 62) + text;
  }
  return text;
}
