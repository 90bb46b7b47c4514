/**
 * The text of a token, of which only the hash is ever stored. Its parts, in base62 after the prefix:
 * - `plant_`, by which secret scanners find leaked tokens
 * - the number of its store, which shows where to look the token up (decision 4)
 * - 32 random bytes
 * - the CRC-32 of both, by which the service refuses typos without a query
 */
import { createHmac, hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { shortHash, shortHashChars } from '../shared/short-hash.ts';
import type { TokenCredential } from './access.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const prefix = 'plant_';
const storeChars = 9; // 62^9 is the first power above 2^53
const secretBytes = 32;
const saltBytes = 16;
const secretChars = 43; // 62^43 the first above 2^256
const checksumChars = 6; // and 62^6 the first above 2^32
const tokenChars = prefix.length + storeChars + secretChars + checksumChars;
const tokenPattern = new RegExp(`^${prefix}[${alphabet}]+$`);

const tokenLikePattern = new RegExp(`${prefix}[${alphabet}]{16,}`, 'g');
/**
 * The header of a JWT is an object, so its base64 begins with that of `{"`. The lookarounds make the time linear: only
 * the start of a word is tried, and only if dots follow it.
 */
const jwtLikePattern =
  /(?<![\w-])(?=[\w-]{11,}\.[\w-]{8,}\.)([\w-]*?)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g;

/** Length of the hash that identifies a token in a storage. */
export const tokenHashBytes = 32;
/** The public id of a token has the first bytes of its hash, in hexadecimal. */
export const idBytes = 8;
const idHexChars = 2 * idBytes;
const idPattern = new RegExp(`^([${alphabet}]{${storeChars}})-([0-9a-f]{${idHexChars}})$`);

/** A new token of a store: 64 characters, 256 random bits. */
export function makeToken(store: number): string {
  return tokenWith(store, randomBytes(secretBytes));
}

/**
 * The token that a repeated request with the same token gets again: an HMAC (RFC 2104) of its salt, with that token as its key.
 * With the token or the database alone, nobody can compute it: only the database has the salt.
 */
export function deriveToken(store: number, token: string, salt: string): string {
  return tokenWith(store, createHmac('sha256', token).update(salt).digest());
}

/**
 * The salt of a new token. A repeated request finds the token by the hashes of its key and of its terms, with which the salt
 * begins. The rest is random. The key names the token that sends it, because each has its own keys.
 */
export function makeSalt(key: string, terms: string): string {
  return shortHash(key) + shortHash(terms) + randomBytes(saltBytes).toString('base64url');
}

/** Whether two salts are of requests with the same key and the same terms. */
export function isRepeated(salt: string, other: string): boolean {
  return salt.slice(0, 2 * shortHashChars) === other.slice(0, 2 * shortHashChars);
}

function tokenWith(store: number, bytes: Buffer): string {
  const secret = base62(BigInt(`0x${bytes.toString('hex')}`), secretChars);
  const body = base62(store, storeChars) + secret;
  return prefix + body + checksumOf(body);
}

/** Whether `text` has the form of a token and a valid checksum. Such a token need not exist. */
export function isToken(text: string): boolean {
  return tokenFault(text) === undefined;
}

/** Why `text` is not a token; undefined if it can be one. Never quotes the text. */
export function tokenFault(text: string): string | undefined {
  if (!text.startsWith(prefix)) return `it does not begin with ${prefix}`;
  if (text.length !== tokenChars) {
    return `it has ${text.length} characters instead of ${tokenChars}`;
  }
  if (!tokenPattern.test(text)) return 'it has a character that no token has';
  const isIntact = text.endsWith(checksumOf(text.slice(prefix.length, -checksumChars)));
  return isIntact ? undefined : 'its checksum is wrong, so it is mistyped or made up';
}

/** The number of the store that a token names. */
export function storeOf(token: string): number {
  return numberOf(token.slice(prefix.length, prefix.length + storeChars));
}

/** What a storage needs to find a token. */
export function credentialOf(token: string): TokenCredential {
  return { tokenHash: hashToken(token), store: storeOf(token) };
}

/** Removes anything that looks like a token or a JWT, so that no message repeats one from a wrong place. */
export function redactTokens(text: string): string {
  return text.replaceAll(tokenLikePattern, `${prefix}...`).replaceAll(jwtLikePattern, '$1eyJ...');
}

/** SHA-256 of the token's text. Nothing else of it is stored. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/**
 * The public id of a token: the number of its store and a part of its hash, so it reveals nothing else about the token.
 * The id of a JWT, which names no store, is only a part of its hash.
 */
export function tokenId(tokenHash: Uint8Array, store: number | undefined): string {
  const hex = Buffer.from(tokenHash).toString('hex', 0, idBytes);
  return store === undefined ? hex : `${base62(store, storeChars)}-${hex}`;
}

/** Tokens with the same id: those of a store in a range of hashes. */
interface TokenRange {
  store: number;
  first: Uint8Array;
  last: Uint8Array;
}

/** The tokens that an id stands for; undefined if `id` is not an id of a token. */
export function rangeOf(id: string): TokenRange | undefined {
  const [, store, hex] = idPattern.exec(id) ?? [];
  if (store === undefined || hex === undefined) return undefined;
  const first = Buffer.from(hex, 'hex');
  const last = Buffer.concat([first], tokenHashBytes).fill(0xff, first.length);
  return { store: numberOf(store), first, last };
}

function base62(value: bigint | number, chars: number): string {
  let text = '';
  for (let rest = BigInt(value); text.length < chars; rest /= 62n) {
    text = alphabet.charAt(Number(rest % 62n)) + text;
  }
  return text;
}

/** The value of base62 text. Up to 2^53, it is exact. */
function numberOf(text: string): number {
  let value = 0;
  for (const digit of text) value = value * 62 + alphabet.indexOf(digit);
  return value;
}

function checksumOf(body: string): string {
  return base62(crc32(body), checksumChars);
}
