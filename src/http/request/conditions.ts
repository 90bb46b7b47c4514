/**
 * Conditional requests (RFC 9110, section 13), with the strong entity tags of plants. A weak tag never satisfies
 * `If-Match`.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { assertCondition, entityTag, type Condition } from '../../plants/condition.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import { Problem } from '../../problem.ts';

interface EntityTag {
  opaque: string;
  isWeak: boolean;
}

/** The strong tags of `If-Match`. Undefined if there is none, or if every plant that exists satisfies it. */
export function ifMatch({ headers }: FastifyRequest): Condition {
  const tags = tagsIn('If-Match', headers['if-match']);
  if (tags === undefined || tags === 'any') return undefined;
  return tags.filter(({ isWeak }) => !isWeak).map(({ opaque }) => opaque);
}

/** Whether the client has this version already, for 304. Throws `precondition-failed`. */
export function isCurrent(request: FastifyRequest, plant: OwnedPlant): boolean {
  const { headers } = request;
  assertCondition(ifMatch(request), plant);
  const tags = tagsIn('If-None-Match', headers['if-none-match']);
  if (tags === undefined) return false;
  return tags === 'any' || tags.some(({ opaque }) => opaque === entityTag(plant));
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
function tagsIn(name: string, field: string | undefined): readonly EntityTag[] | 'any' | undefined {
  if (field === undefined) return undefined;
  if (field.trim() === '*') return 'any';
  const tags: EntityTag[] = [];
  const next = /[ \t]*(?:(W\/)?"([!#-~\x80-\xff]*)"[ \t]*)?(?:,|$)/y;
  while (next.lastIndex < field.length) {
    const [whole, weak, opaque] = next.exec(field) ?? [];
    if (whole === undefined) {
      throw new Problem(
        'invalid-request',
        `Send "${name}" as the "ETag" of a plant, with its quotation marks, or as a list of them.`,
      );
    }
    if (opaque !== undefined) tags.push({ opaque, isWeak: weak !== undefined });
  }
  return tags;
}
