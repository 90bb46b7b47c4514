/**
 * Tokens as people paste them. The page sends nothing else: it could be the password of something else.
 */

/** The token in a text that a person pasted: a token, a link, or a whole header. Throws a Malformed. */
export function findToken(text: string): string {
  const [token] = /plant_[0-9A-Za-z]{58}(?![0-9A-Za-z])/.exec(text) ?? [];
  if (token !== undefined) return token;
  throw new Malformed('Paste the whole token: it starts with "plant_" and has 64 characters.');
}

/** Whether the service has created this token, and not an identity provider. */
export function isOfService(token: string): boolean {
  return token.startsWith('plant_');
}

/** What is wrong with a pasted token, for the person who pasted it. */
export class Malformed extends Error {
  override readonly name = 'Malformed';
}
