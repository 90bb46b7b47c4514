/**
 * Authentication and validation of both typical servers.
 */
import { createHash } from 'node:crypto';

/** The hash of the bearer token; undefined if there is none. */
export function tokenHash(request) {
  const [scheme, token] = (request.get('authorization') ?? '').split(' ');
  const isBearer = scheme?.toLowerCase() === 'bearer' && token !== undefined;
  return isBearer ? createHash('sha256').update(token).digest() : undefined;
}

/** The fault in the parameters of a list; undefined if they are valid. */
export function faultOfList({ limit, after }) {
  if (limit !== undefined && !isCount(limit)) return 'invalid limit';
  if (after !== undefined && !isCount(after)) return 'invalid after';
}

/** The fault in a plant to create; undefined if it is valid. */
export function faultOfPlant({ id, name, tag }) {
  if (!isText(name, 200) || name.trim() === '') return 'invalid name';
  if (tag !== undefined && !isText(tag, 100)) return 'invalid tag';
  if (id !== undefined && !(Number.isSafeInteger(id) && id > 0)) return 'invalid id';
}

/** The fault in the fields to change; undefined if they are valid. */
export function faultOfChange({ name, tag }) {
  return faultOfPlant({ name: name ?? 'as it was', tag });
}

export function isCount(text) {
  return typeof text === 'string' && /^\d{1,15}$/.test(text);
}

export function refuse(response, status, error) {
  response.status(status).json({ error });
}

function isText(value, maxChars) {
  return typeof value === 'string' && value.length <= maxChars;
}
