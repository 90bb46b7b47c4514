/**
 * Tokens as people paste them. The service refuses bad ones too, but the page checks them first. Otherwise it would
 * send what may be the password of something else.
 */
const checksumChars = 6;
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The token in a text that a person pasted: a token, a link, or a whole header. Throws a Malformed. */
export function findToken(text: string): string {
  const pasted = text.trim();
  if (pasted === '') throw new Malformed('Paste your access token here.');
  const [token] = /plant_[0-9A-Za-z]*/.exec(pasted) ?? [];
  if (token === undefined) throw new Malformed('This is not a token: tokens start with "plant_".');
  if (!token.endsWith(checksumOf(token.slice('plant_'.length, -checksumChars)))) {
    throw new Malformed('A character of this token is missing or wrong. Copy it again.');
  }
  return token;
}

/** Whether the service has created this token, and not an identity provider. */
export function isOfService(token: string): boolean {
  return token.startsWith('plant_');
}

/** What is wrong with a pasted token, for the person who pasted it. */
export class Malformed extends Error {
  override readonly name = 'Malformed';
}

/** The checksum at the end of a token: CRC-32 in base62. */
function checksumOf(secret: string): string {
  let text = '';
  for (let rest = crc32(secret); text.length < checksumChars; rest = Math.floor(rest / 62)) {
    text = alphabet.charAt(rest % 62) + text;
  }
  return text;
}

/** CRC-32 of ASCII text. A table would not be worth its size for one token. */
function crc32(text: string): number {
  let crc = -1;
  for (const character of text) {
    crc ^= character.charCodeAt(0);
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xed_b8_83_20 : 0);
  }
  return ~crc >>> 0;
}
