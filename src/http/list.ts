/**
 * Lists as answers: a page, or everything in a stream that holds one batch in memory, however long
 * the list is and however slow the client.
 */
import { Readable } from 'node:stream';
import type { Caller } from '../access.ts';
import { defaultFields, type PlantField } from '../plant.ts';
import type { PlantPage, PlantQuery, Storage } from '../storage.ts';

/** Plants that are read at once: about 50 KB of JSON, and half a millisecond of the event loop. */
const batchPlants = 1_000;

export interface ListQuery {
  limit?: number;
  after?: number;
  tag?: string;
  fields?: readonly PlantField[];
}

export interface List {
  body: string | Readable;
  /** The cursor of the next page; undefined where no plant follows, or no limit was given. */
  next: number | undefined;
}

/** Where nobody waits for the list any more, `isGone` says so, and no more of it is read. */
export async function listPlants(
  storage: Storage,
  caller: Caller,
  { limit, after = 0, tag, fields = defaultFields }: ListQuery,
  isGone: () => boolean,
): Promise<List> {
  const read = (range: Omit<PlantQuery, 'tag' | 'fields'>, wanted = fields) =>
    storage.listPlants(caller, { ...range, tag, fields: wanted });

  const first = await read({ after, limit: Math.min(limit ?? Infinity, batchPlants) });
  if (first.next === undefined || (limit !== undefined && limit <= batchPlants)) {
    return { body: `[${first.json}]`, next: first.next };
  }
  const end = limit === undefined ? undefined : await endOfPage(read, first.next, limit, isGone);
  return { body: Readable.from(jsonOf(read, first, limit, end?.lastId)), next: end?.next };
}

type Read = (
  range: Omit<PlantQuery, 'tag' | 'fields'>,
  fields?: readonly PlantField[],
) => Promise<PlantPage>;

/**
 * Where a page too long to hold ends and others follow; `after` is where its first batch ends. The
 * answer's Link must be known before its first plant is sent, so the ids are walked once before.
 */
async function endOfPage(read: Read, after: number, limit: number, isGone: () => boolean) {
  let lastId = after;
  let next: number | undefined = after;
  for (let left = limit - batchPlants; left > 0 && next !== undefined && !isGone();) {
    await turnOfOthers();
    const batch = Math.min(left, batchPlants);
    const page: PlantPage = await read({ after: next, limit: batch }, ['id']);
    ({ next } = page);
    lastId = next ?? Number(/\d+(?=\}$)/.exec(page.json)?.[0] ?? lastId);
    left -= batch;
  }
  return { lastId, next };
}

/**
 * The JSON of a list in batches: `first`, which is read already, and what follows up to `upTo`. As
 * text: bytes would be a tenth faster, and take more memory until they are collected.
 */
async function* jsonOf(
  read: Read,
  first: PlantPage,
  limit: number | undefined,
  upTo: number | undefined,
): AsyncGenerator<string> {
  yield `[${first.json}`;
  let { next } = first;
  for (let left = (limit ?? Infinity) - batchPlants; next !== undefined && left > 0;) {
    await turnOfOthers();
    const batch = Math.min(left, batchPlants);
    const page: PlantPage = await read({ after: next, upTo, limit: batch });
    if (page.json !== '') yield `,${page.json}`;
    ({ next } = page);
    left -= batch;
  }
  // Plants with ids of their own came in among those that were counted. To leave out any could leave
  // out one that the next page skips, so the transfer breaks off, for the client to repeat.
  if (next !== undefined && limit !== undefined) {
    throw new Error('plants were created inside a page while it was being sent');
  }
  yield ']';
}

/** A storage may answer without ever leaving the event loop's turn; other requests want theirs. */
function turnOfOthers(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
