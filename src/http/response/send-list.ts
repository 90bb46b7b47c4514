/**
 * Sends lists: pages as text, and lists without a limit as a stream. Memory is bounded for any length of the list, size
 * of its items and speed of the client. A stream reads the next batch when the client has read the previous one, and
 * batches have a maximum size.
 *
 * If the client stops reading, the stream waits until `idleTimeoutMs` (limits.ts) closes the connection.
 */
import type { ServerResponse } from 'node:http';
import { finished, Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { userKey } from '../../access/access.ts';
import { fixedProblem } from '../../problem.ts';
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { maxUnreadBytes, maxUnreadBytesOfUser, maxUnreadWaitMs } from '../limits.ts';
import { sendJson } from './send.ts';

/**
 * Minimum length of a chunk of a stream, except the last. Node buffers up to 64 KiB for a socket, and can lose the
 * event `drain` if a response is written in smaller chunks.
 */
const minChunkChars = 64 * 1024;
/** Approximate length of a batch. */
const batchChars = 72 * 1024;
const defaultMinBatchItems = 50; // plants of the maximum size have about `batchChars` together
const firstBatchItems = 128;

/** Memory of a stream: two batches, and the copies that Node makes. A page needs it besides its items. */
const streamBytes = 256 * 1024;
/** A whole body: the longest names and texts of its items take this much each. */
const maxItemBytes = 3 * 1024;
const maxItems = 1_000;
/** Memory of short pages up to this length is not counted, because they fit in the buffers of the operating system. */
const maxUncountedChars = 16 * 1024;

/** A list whose cursors are the ids or names of its items. */
export interface List<Cursor> {
  query: Query & { after?: Cursor };
  /** Maximum number of items in a batch: reading it must not take much longer than other requests. */
  maxBatchItems: number;
  /** Minimum number of items in a batch, however long they are. */
  minBatchItems?: number | undefined;
  /** The text of the body before, between and after its arrays. */
  frame?: readonly [string, ...string[], string];
  /** Without a cursor, the list begins. */
  read: (range: Range<Cursor>) => Promise<Batch<Cursor>>;
}

/** Parameters of a list. Arrays are repeated in URLs. */
interface Query {
  limit?: number;
  [name: string]: boolean | number | string | readonly string[] | undefined;
}

interface Range<Cursor> {
  after: Cursor | undefined;
  limit: number;
  /** Throws once the client has disconnected, because nobody would get the response. */
  assertWanted: () => void;
}

interface Batch<Cursor> {
  /** The items of each array of the body, separated by commas. Empty if they have been deleted meanwhile. */
  arrays: readonly string[];
  /** The cursor of the last item; undefined at the end of the list. */
  next: Cursor | undefined;
}

export class Lists {
  readonly #log: Logger;
  /** Prefix of URLs in responses, without a trailing slash; empty for path-absolute URLs. */
  readonly #baseUrl: string;
  /** Memory of responses that their clients have not read. */
  readonly #unread = new FairSemaphore({
    max: maxUnreadBytes,
    maxOfKey: maxUnreadBytesOfUser,
    maxWaitMs: maxUnreadWaitMs,
    refusal: tooManyUnread,
  });

  constructor(log: Logger, baseUrl: string) {
    this.#log = log;
    this.#baseUrl = baseUrl;
  }

  /** Sends a page that is in memory, which is the most frequent response. */
  sendPage(
    request: FastifyRequest,
    reply: FastifyReply,
    query: Query,
    { json, next }: { json: string; next: string | number | undefined },
  ): FastifyReply {
    const text = `[${json}]`;
    if (text.length > maxUncountedChars) {
      const key = userKey(request.grant.caller);
      const bytes = Buffer.byteLength(text);
      if (!this.#unread.tryAcquire(key, bytes)) throw tooManyUnread();
      this.#releaseOnClose(key, bytes, reply.raw);
    }
    this.#addLink(request, reply, query, next);
    return sendJson(reply, text);
  }

  /** Sends a list that takes more than one short read. Waits until there is memory for what it needs at most. */
  async send<Cursor extends string | number>(
    request: FastifyRequest,
    reply: FastifyReply,
    list: List<Cursor>,
  ): Promise<FastifyReply> {
    const { query, frame = ['[', ']'] } = list;
    // A page is sent as a whole, because `Link` comes before its items. So is a body with several arrays.
    const isStream = query.limit === undefined && frame.length === 2;
    const items = isStream ? 0 : (query.limit ?? maxItems);
    const maxBytes = streamBytes + items * maxItemBytes;
    const key = userKey(request.grant.caller);
    await this.#unread.acquire(key, maxBytes);
    const reduceTo = this.#releaseOnClose(key, maxBytes, reply.raw);

    const read = readerOf(list, reply.raw);
    const { arrays, next } = await read(isStream ? minChunkChars : Infinity);
    if (isStream && next !== undefined) {
      if (request.method === 'HEAD') return sendJson(reply, Readable.from([]));
      const body = streamOf(arrays, read);
      // The status has already been sent, so the service can only abort the response.
      body.once('error', (err) => this.#log.error({ requestId: request.id, err }, 'list aborted'));
      return sendJson(reply, body);
    }
    const json = frame.map((text, at) => text + (arrays[at] ?? '')).join('');
    reduceTo(Buffer.byteLength(json));
    this.#addLink(request, reply, query, next);
    return sendJson(reply, json);
  }

  /** Returns a function that releases all but what the complete response needs. The rest follows when it closes. */
  #releaseOnClose(key: string, bytes: number, response: ServerResponse): (needed: number) => void {
    let held = bytes;
    const reduceTo = (needed: number) => {
      const left = Math.min(held, needed); // 0 if it has closed
      this.#unread.release(key, held - left);
      held = left;
    };
    finished(response, () => reduceTo(0)); // also if it was destroyed before
    return reduceTo;
  }

  /** The address of the next page, with all other parameters unchanged. Arrays are repeated, as openapi.json describes it. */
  #addLink(
    request: FastifyRequest,
    reply: FastifyReply,
    query: Query,
    next: string | number | undefined,
  ): void {
    if (query.limit === undefined || next === undefined) return;
    let text = `limit=${query.limit}&after=${encodeURIComponent(next)}`;
    for (const name in query) {
      if (name === 'limit' || name === 'after') continue;
      for (const value of [query[name] ?? []].flat())
        text += `&${name}=${encodeURIComponent(value)}`;
    }
    reply.header('link', `<${this.#baseUrl}${request.routeOptions.url}?${text}>; rel="next"`);
  }
}

/** Returns a function that throws once the client has disconnected, because nobody would get the response. */
export function wantedBy(response: ServerResponse): () => void {
  return () => {
    if (response.destroyed) throw disconnected();
  };
}

const tooManyUnread = fixedProblem(
  'overloaded',
  'Too many long responses are unread. Read them first, or request short pages with "limit".',
);

const disconnected = fixedProblem(
  'invalid-request',
  'The connection closed before the response was complete.',
);

/** Reads on until there is that much text, or to the end of the page or list. */
type Reader<Cursor> = (minChars: number) => Promise<Batch<Cursor>>;

function readerOf<Cursor extends string | number>(
  { query, maxBatchItems, minBatchItems = defaultMinBatchItems, read }: List<Cursor>,
  response: ServerResponse,
): Reader<Cursor> {
  const assertWanted = wantedBy(response);
  let { after, limit: left = Infinity } = query;
  let items = Math.max(minBatchItems, firstBatchItems);
  return async (minChars) => {
    const found: (string[] | undefined)[] = [];
    for (let chars = 0; chars < minChars && left > 0;) {
      assertWanted();
      const limit = Math.min(left, items, maxBatchItems);
      const { arrays, next }: Batch<Cursor> = await read({ after, limit, assertWanted });
      const length = arrays.join().length;
      items = Math.max(minBatchItems, Math.floor((batchChars * limit) / length));
      if (length > 2 * batchChars && limit > minBatchItems) continue; // read fewer items
      for (const [at, text] of arrays.entries()) if (text !== '') (found[at] ??= []).push(text);
      chars += length;
      left = next === undefined ? 0 : left - limit;
      after = next;
    }
    return { arrays: Array.from(found, (texts = []) => texts.join()), next: after };
  };
}

/** Sends one array, from its first items on. While the client reads a chunk, nothing here holds it. */
function streamOf<Cursor>(first: readonly string[], readOn: Reader<Cursor>): Readable {
  const body = new Readable({
    objectMode: true,
    // Reads no batch before the client has the previous chunk. Readable.from() would read one more.
    highWaterMark: 0,
    async read() {
      try {
        const { arrays, next } = await readOn(minChunkChars);
        const isLast = next === undefined;
        this.push(arrays.map((items) => `,${items}`).join('') + (isLast ? ']' : ''));
        if (isLast) this.push(null);
      } catch (error) {
        this.destroy(error instanceof Error ? error : new Error('aborted', { cause: error }));
      }
    },
  });
  body.push(`[${first.join()}`);
  return body;
}
