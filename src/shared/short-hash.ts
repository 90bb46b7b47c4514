import { hash } from 'node:crypto';

export const shortHashChars = 22;

/** 128 bits of the SHA-256 of a text. */
export function shortHash(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, shortHashChars);
}
