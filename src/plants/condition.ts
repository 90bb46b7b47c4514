/**
 * The entity tag of a plant (RFC 9110, section 8.8.3), and the condition that a change can have.
 *
 * The tag is a hash of what a client can see change: no column, and no cost for those who do not ask (decision 42). If a
 * plant was changed and changed back, a condition holds again, as what it protects is the same.
 */
import { hash } from 'node:crypto';
import { Problem } from '../problem.ts';
import type { OwnedPlant } from './plant-storage.ts';

const tagChars = 22; // 128 bits

/** The opaque part of the entity tag, without quotes. */
export function entityTag({ name, tag, owner }: Omit<OwnedPlant, 'id'>): string {
  const text = `${owner} ${name.length} ${name}${tag}`; // without ambiguity
  return hash('sha256', text, 'base64url').slice(0, tagChars);
}

/** The strong entity tags, one of which the plant must have. Undefined if the change has no condition. */
export type Condition = readonly string[] | undefined;

/** Throws `precondition-failed` unless the plant has one of the tags. */
export function assertCondition(condition: Condition, plant: Omit<OwnedPlant, 'id'>): void {
  if (condition === undefined || condition.includes(entityTag(plant))) return;
  throw new Problem('precondition-failed', condition.length === 0 ? onlyWeak : hasChanged);
}

const hasChanged =
  'The plant has changed since you read it. Get it again, then decide whether to repeat your change with its new "ETag".';
const onlyWeak =
  'A weak entity tag (W/"...") never satisfies "If-Match". Usually a proxy that compresses responses made it weak: switch compression off there.';
