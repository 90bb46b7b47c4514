/**
 * Tokens that people paste or follow a link with, and what is wrong with them.
 */
import { PlantStoreError } from '../../client/problem.ts';

/** What is wrong with a token, for the person who has it. */
export class Unusable extends Error {
  override readonly name = 'Unusable';
}

/**
 * The token in a text that a person pasted: a token, a link, or a whole header. Throws an Unusable: the page sends
 * nothing else, because it could be the password of something else.
 */
export function findToken(text: string): string {
  const [found] = /plant_[0-9A-Za-z]{58}(?![0-9A-Za-z])/.exec(text) ?? [];
  if (found !== undefined) return found;
  throw new Unusable('Paste the whole token: it starts with "plant_" and has 64 characters.');
}

/** Whether the service has created this token, and not an identity provider. */
export function isOfService(which: string): boolean {
  return which.startsWith('plant_');
}

/** What is wrong with a token. Throws other errors. */
export function faultOf(error: unknown): string {
  if (error instanceof Unusable) return error.message;
  if (error instanceof PlantStoreError) return error.detail;
  throw error;
}

/** Tells the person who followed a link with a token that does not work what they can do. */
export function explainLink(error: unknown): never {
  const isRefused = error instanceof PlantStoreError && error.status === 401;
  throw isRefused
    ? new Unusable(`${error.detail} Ask whoever sent the link for a new one.`)
    : error;
}
