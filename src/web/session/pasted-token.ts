/**
 * Tokens that people paste or follow a link with: what is wrong with them, and what the page asks first.
 */
import type { Token } from '../../client/client.ts';
import { PlantStoreError } from '../../client/problem.ts';
import type { Question } from '../shared/confirm.ts';
import { joined, sentence } from '../shared/dom.ts';
import { titleOf } from './join.ts';

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
    ? new Unusable('This link has expired, or was revoked. Ask whoever sent it for a new one.')
    : error;
}

export function isOther(one: Token, other: Token): boolean {
  return one.store !== other.store || one.user !== other.user;
}

/** Whoever follows a link may not know that it is for another user, or that they need not join. */
export function questionAbout(before: Token, next: Token): Question {
  const current = sentence`You are signed in as “${before.user}” in the store “${before.store}”.`;
  if (next.invitation !== undefined) {
    const others = 'Cancel to leave the invitation for another device or person.';
    return {
      title: titleOf(next),
      text: joined([current, others], ' '),
      action: 'Join',
      isSafe: true,
    };
  }
  return {
    title: sentence`Open the store “${next.store}” as “${next.user}”?`,
    text: joined(['The link is for another user.', current], ' '),
    action: 'Open',
    isSafe: true,
  };
}
