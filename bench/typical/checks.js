/**
 * What both typical servers check of a request before they ask their database.
 */
import { createHash } from 'node:crypto';

/** The hash of the token that a request carries; undefined where it carries none. */
export function tokenHash(request) {
  const [scheme, token] = (request.get('authorization') ?? '').split(' ');
  const isBearer = scheme?.toLowerCase() === 'bearer' && token !== undefined;
  return isBearer ? createHash('sha256').update(token).digest() : undefined;
}

/** What is wrong with the parameters of a list; undefined where nothing is. */
export function faultOfList({ limit, after }) {
  if (limit !== undefined && !isCount(limit)) return 'invalid limit';
  if (after !== undefined && !isCount(after)) return 'invalid after';
}

/** What is wrong with a plant to create; undefined where nothing is. */
export function faultOfPlant({ id, name, tag }) {
  if (!isText(name, 200) || name.trim() === '') return 'invalid name';
  if (tag !== undefined && !isText(tag, 100)) return 'invalid tag';
  if (id !== undefined && !(Number.isSafeInteger(id) && id > 0)) return 'invalid id';
}

export function isCount(text) {
  return typeof text === 'string' && /^\d{1,15}$/.test(text);
}

export function refuse(response, status, error) {
  response.status(status).json({ error });
}

function isText(value, charsMax) {
  return typeof value === 'string' && value.length <= charsMax;
}
