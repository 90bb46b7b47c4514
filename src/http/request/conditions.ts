/**
 * Conditional requests (RFC 9110, section 13), with the strong entity tags of plants. A weak tag never satisfies
 * `If-Match`.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  assertCondition,
  entityTag,
  hasTag,
  type Condition,
  type EntityTags,
} from '../../plants/entity-tag.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import { invalidParameter, type Problem } from '../../problem.ts';

/** Undefined if the request has none. Throws `invalid-request`. */
export function conditionOf({ headers }: FastifyRequest): Condition | undefined {
  const match = tagsIn('If-Match', headers['if-match'], 'strong');
  const noneMatch = tagsIn('If-None-Match', headers['if-none-match'], 'all');
  return match === undefined && noneMatch === undefined ? undefined : { match, noneMatch };
}

/** Whether the client has this version already, for 304. Throws `precondition-failed`. */
export function isCurrent(request: FastifyRequest, plant: OwnedPlant): boolean {
  const { match, noneMatch = [] } = conditionOf(request) ?? {};
  assertCondition({ match }, plant);
  return hasTag(plant, noneMatch);
}

/** To a HEAD without a payload, Fastify would add `Content-Length: 0` (RFC 9110, section 8.6). */
export function sendNotModified(
  { method }: FastifyRequest,
  reply: FastifyReply,
  plant: OwnedPlant,
): FastifyReply {
  const payload = method === 'HEAD' ? Readable.from([]) : undefined;
  return setEntityTag(reply.code(304), plant).send(payload);
}

export function setEntityTag(reply: FastifyReply, plant: OwnedPlant): FastifyReply {
  return reply.header('etag', `"${entityTag(plant)}"`);
}

/** Undefined if the header is missing. Throws `invalid-request` if it is malformed. */
function tagsIn(
  name: string,
  field: string | undefined,
  wanted: 'strong' | 'all',
): EntityTags | undefined {
  if (field === undefined) return undefined;
  if (field.trim() === '*') return 'any';
  const tags: string[] = [];
  let isBlank = true;
  const next = /[ \t]*(?:(W\/)?"([!#-~\x80-\xff]*)"[ \t]*)?(?:,|$)/y;
  while (next.lastIndex < field.length) {
    const [whole, weak, opaque] = next.exec(field) ?? [];
    if (whole === undefined) throw malformed(name);
    if (opaque === undefined) continue;
    isBlank = false;
    if (wanted === 'all' || weak === undefined) tags.push(opaque);
  }
  if (isBlank) throw malformed(name); // the client has no entity tag
  return tags;
}

function malformed(name: string): Problem {
  return invalidParameter(
    name,
    `Send "${name}" as the "ETag" of a plant, with its quotation marks, or as a list of them.`,
  );
}
