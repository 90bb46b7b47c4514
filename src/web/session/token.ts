/**
 * Tokens as people paste them. The page sends nothing else: it could be the password of something else.
 */

/** The length of every token. */
const tokenChars = 64;

/** The token in a text that a person pasted: a token, a link, or a whole header. Throws a Malformed. */
export function findToken(text: string): string {
  const pasted = text.trim();
  if (pasted === '') throw new Malformed('Paste your access token here.');
  const [token] = /plant_[0-9A-Za-z]*/.exec(pasted) ?? [];
  if (token === undefined) throw new Malformed('This is not a token: tokens start with "plant_".');
  if (token.length === tokenChars) return token;
  throw new Malformed(
    `This token has ${token.length} characters instead of ${tokenChars}. Copy it again.`,
  );
}

/** Whether the service has created this token, and not an identity provider. */
export function isOfService(token: string): boolean {
  return token.startsWith('plant_');
}

/** What is wrong with a pasted token, for the person who pasted it. */
export class Malformed extends Error {
  override readonly name = 'Malformed';
}
