/**
 * Sends lists: pages as text, and lists without a limit as a stream. Memory is bounded for any length of the list, size
 * of its items and speed of the client. A stream reads the next batch when the client has read the previous one, and
 * batches have a maximum size.
 *
 * If the client stops reading, the stream waits until `idleTimeoutMs` (limits.ts) closes the connection.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { Problem } from '../../problem.ts';
import type { UnreadResponses } from './unread-responses.ts';
import { sendJson } from './send.ts';

/**
 * Minimum length of a chunk of a stream, except the last. Node buffers up to 64 KiB for a socket, and can lose the
 * event `drain` if a response is written in smaller chunks.
 */
const minChunkChars = 64 * 1024;
/** Approximate length of a batch, and its minimum number of items. */
const batchChars = 72 * 1024;
const minBatchItems = 50; // plants of the maximum size have about `batchChars` together
const firstBatchItems = 128;

/** Memory of a stream: two batches, and the copies that Node makes. A page needs it besides its items. */
const streamBytes = 256 * 1024;
/** A whole body: the longest names and texts of its items take this much each. */
const maxItemBytes = 3 * 1024;
const maxItems = 1_000;

/** A list whose cursors are the ids or names of its items. */
export interface List<Cursor extends string | number> {
  /** The path below the base URL. */
  path: string;
  query: Query;
  /** The first batch begins after this cursor. */
  after: Cursor;
  /** Maximum number of items in a batch: reading it must not take much longer than other requests. */
  maxBatchItems: number;
  /** The text of the body before, between and after its arrays. */
  frame: Frame;
  read: (range: Range<Cursor>) => Promise<Batch<Cursor>>;
}

type Frame = readonly [string, ...string[], string];

/** Parameters of a list. Arrays are repeated in URLs. */
interface Query {
  limit?: number;
  [name: string]: number | string | readonly string[] | undefined;
}

export interface Range<Cursor> {
  after: Cursor;
  limit: number;
}

export interface Batch<Cursor> {
  /** The items of each array of the body, separated by commas. Empty if they have been deleted meanwhile. */
  arrays: readonly string[];
  /** The cursor of the last item; undefined at the end of the list. */
  next: Cursor | undefined;
}

/** Resolves to the next batch, and to undefined at the end. */
type BatchReader<Cursor> = () => Promise<Batch<Cursor> | undefined>;

/** What all lists share. */
export interface ListOptions {
  unread: UnreadResponses;
  log: Logger;
  /** Prefix of URLs in responses, without a trailing slash; empty for path-absolute URLs. */
  baseUrl: string;
}

/** Sends a page that took one short read, which is the most frequent response. `json` has its items. */
export function sendShortPage(
  { query, grant }: FastifyRequest<{ Querystring: Query }>,
  reply: FastifyReply,
  path: string,
  { json, next }: { json: string; next: number | undefined },
  { unread, baseUrl }: ListOptions,
): FastifyReply {
  const text = `[${json}]`;
  unread.reserveText(grant.caller, reply.raw, text);
  if (next !== undefined) addLink(reply, baseUrl + path, query, next);
  return sendJson(reply, text);
}

/** Sends a list that takes more than one short read, with the address of the next page if there is one. */
export async function sendList<Cursor extends string | number>(
  request: FastifyRequest,
  reply: FastifyReply,
  list: List<Cursor>,
  { unread, log, baseUrl }: ListOptions,
): Promise<FastifyReply> {
  const { path, query, frame } = list;
  const isStream = query.limit === undefined && frame.length === 2;
  const items = isStream ? 0 : (query.limit ?? maxItems);
  const bytes = streamBytes + items * maxItemBytes;
  const reduceTo = await unread.reserve(request.grant.caller, reply.raw, bytes);
  const readNext = batchReader(list, reply);
  if (isStream) {
    const chunks = chunksOf(frame, readNext);
    const { value, done } = await chunks.next();
    if (done === true) {
      reduceTo(Buffer.byteLength(value));
      return sendJson(reply, value);
    }
    if (request.method === 'HEAD') return sendJson(reply, Readable.from([]));
    const body = streamOf(value, chunks);
    // The status has already been sent, so the service can only abort the response.
    body.once('error', (err) => log.error({ requestId: request.id, err }, 'list aborted'));
    return sendJson(reply, body);
  }
  const { arrays, next } = await readPage(frame, readNext);
  const json = frame.map((text, at) => text + (arrays[at] ?? '')).join('');
  reduceTo(Buffer.byteLength(json));
  if (query.limit !== undefined && next !== undefined) {
    addLink(reply, baseUrl + path, query, next);
  }
  return sendJson(reply, json);
}

/** Throws once the client has disconnected, because nobody would get the response. */
export function assertConnected({ raw }: FastifyReply): void {
  if (!raw.destroyed) return;
  throw new Problem('invalid-request', 'The connection closed before the response was complete.');
}

/** A page is sent as a whole, because `Link` comes before its items. So is a body with several arrays. */
async function readPage<Cursor extends string | number>(
  frame: Frame,
  readNext: BatchReader<Cursor>,
): Promise<Batch<Cursor>> {
  const arrays = frame.slice(1).map((): string[] => []);
  let next: Cursor | undefined;
  for (let batch = await readNext(); batch !== undefined; batch = await readNext()) {
    for (const [at, items] of batch.arrays.entries()) if (items !== '') arrays[at]?.push(items);
    ({ next } = batch);
  }
  return { arrays: arrays.map((items) => items.join()), next };
}

/**
 * Yields the text of a list with one array, and returns the last chunk. While the client reads a chunk, nothing here
 * holds that chunk or its batch.
 */
async function* chunksOf<Cursor>(
  [start, end]: Frame,
  readNext: BatchReader<Cursor>,
): AsyncGenerator<string, string> {
  let parts: string[] = [start];
  let [chars, separator] = [0, ''];
  const addNext = async (): Promise<boolean> => {
    const { arrays: [items] = [], next } = (await readNext()) ?? {};
    if (items) {
      parts.push(separator, items);
      chars += items.length;
      separator = ',';
    }
    return next !== undefined;
  };
  const take = (): string => {
    const text = parts.join('');
    parts = [];
    chars = 0;
    return text; // as a string: buffers would be 10 % faster, but hold more memory until garbage collection
  };
  while (await addNext()) if (chars >= minChunkChars) yield take();
  return take() + end;
}

function streamOf(first: string, others: AsyncGenerator<string, string>): Readable {
  const body = new Readable({
    objectMode: true,
    highWaterMark: 0, // reads no batch before the client has read the previous chunk
    async read() {
      try {
        const { value, done } = await others.next();
        this.push(value);
        if (done === true) this.push(null);
      } catch (error) {
        this.destroy(error instanceof Error ? error : new Error('aborted', { cause: error }));
      }
    },
  });
  body.push(first);
  return body;
}

function batchReader<Cursor extends string | number>(
  { after: first, query, maxBatchItems, read }: List<Cursor>,
  reply: FastifyReply,
): BatchReader<Cursor> {
  let after: Cursor | undefined = first;
  let left = query.limit ?? Infinity;
  let items = firstBatchItems;
  return async () => {
    while (after !== undefined && left > 0) {
      assertConnected(reply);
      const limit = Math.min(left, items, maxBatchItems);
      const batch: Batch<Cursor> = await read({ after, limit });
      const chars = batch.arrays.join().length;
      items = Math.max(minBatchItems, Math.floor((batchChars * limit) / chars));
      if (chars > 2 * batchChars && limit > minBatchItems) continue; // read fewer items
      left -= limit;
      after = batch.next;
      return batch;
    }
    return undefined;
  };
}

/** The address of the next page, with all other parameters unchanged. Arrays are repeated, as openapi.json describes it. */
function addLink(reply: FastifyReply, url: string, query: Query, after: string | number): void {
  let text = `limit=${query.limit}&after=${encoded(after)}`;
  for (const name in query) {
    const value = query[name];
    if (name === 'limit' || name === 'after' || value === undefined) continue;
    if (typeof value !== 'object') text += `&${name}=${encoded(value)}`;
    else for (const each of value) text += `&${name}=${encoded(each)}`;
  }
  reply.header('link', `<${url}?${text}>; rel="next"`);
}

function encoded(value: string | number): string | number {
  return typeof value === 'number' ? value : encodeURIComponent(value);
}
