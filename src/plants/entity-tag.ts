/**
 * The entity tag of a plant (RFC 9110, section 8.8.3), and the condition that a change can have.
 *
 * The tag is a hash of what a client can see change: no column, and no cost for those who do not ask (decision 42). If a
 * plant was changed and changed back, a condition holds again, as what it protects is the same.
 */
import { Problem } from '../problem.ts';
import { shortHash } from '../shared/short-hash.ts';
import { textFields } from './fields.ts';
import type { OwnedPlant } from './plant-storage.ts';

/** The opaque part of the entity tag, without quotes. */
export function entityTag(plant: Omit<OwnedPlant, 'id'>): string {
  let [lengths, all] = ['', ''];
  for (const field of textFields) {
    if (all !== '') lengths += `${all.length} `;
    all += plant[field];
  }
  return shortHash(`${plant.owner} ${lengths}${all}`); // without ambiguity
}

/** Entity tags of plants; `any` for each plant that exists. */
export type EntityTags = readonly string[] | 'any';

/** What a request can demand (RFC 9110, section 13.1). */
export interface Condition {
  /** The strong tags of `If-Match`. */
  match?: EntityTags | undefined;
  /** The tags of `If-None-Match`, weak ones included. */
  noneMatch?: EntityTags | undefined;
  /**
   * For a return to a time, not for requests: the position of the last change to the plant. If another has followed, there is
   * nothing to change. Quotas do not limit what comes back.
   */
  follows?: number | undefined;
}

export function hasTag(plant: Omit<OwnedPlant, 'id'>, tags: EntityTags): boolean {
  return tags === 'any' || (tags.length > 0 && tags.includes(entityTag(plant)));
}

/** Throws `precondition-failed`. */
export function assertCondition(
  { match = 'any', noneMatch = [] }: Condition = {},
  plant: Omit<OwnedPlant, 'id'>,
): void {
  if (!hasTag(plant, match)) throw new Problem('precondition-failed', reasonOf(plant, match));
  if (hasTag(plant, noneMatch)) throw new Problem('precondition-failed', isExcluded);
}

function reasonOf(plant: Omit<OwnedPlant, 'id'>, tags: EntityTags): string {
  if (tags.length === 0) return onlyWeak;
  const current = entityTag(plant);
  return tags !== 'any' && tags.some((tag) => tag.startsWith(current)) ? hasSuffix : hasChanged;
}

const hasChanged =
  'The plant has changed since you read it. Get it again, then decide whether to repeat your change with its new "ETag".';
const isExcluded =
  '"If-None-Match" has the current entity tag of the plant, or "*". To change the plant only if it is as you have read it, send its "ETag" in "If-Match".';
const onlyWeak =
  '"If-Match" has no strong entity tag, and a weak one (W/"...") never satisfies it. Usually a proxy that compresses responses made it weak: switch compression off there.';
const hasSuffix =
  '"If-Match" has the entity tag of the plant with a suffix, such as "-gzip", which the service did not send. Usually a proxy that compresses responses added it: switch compression off there.';
