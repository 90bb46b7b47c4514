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
import type { FairSemaphore } from '../fair-semaphore.ts';
import { connectionClosed } from './problems.ts';
import type { Reservation, ResponseBudget } from './response-budget.ts';
import { sendText } from './send.ts';

const jsonMediaType = 'application/json';

/**
 * Minimum length of a chunk of a stream, except the last. Node buffers up to 64 KiB for a socket, and can lose the
 * event `drain` if a response is written in smaller chunks.
 */
const minChunkChars = 64 * 1024;
/** Approximate length of a batch, and its minimum number of items. */
const batchChars = 72 * 1024;
const minBatchItems = 50; // plants of the maximum size have about `batchChars` together
const firstBatchItems = 128;

/** Memory of a stream, or for the next batch of a page: two batches, and the copies that Node makes. */
const streamBytes = 256 * 1024;

/** A list whose cursors are the ids or names of its items. */
export interface List<Cursor extends string | number> {
  /** The path below the base URL. */
  path: string;
  query: Query;
  /** The first batch begins after this cursor. */
  after: Cursor;
  /** If the list is one page that takes one short read. */
  isShort?: boolean;
  /** Maximum number of items in a batch: it must not take much longer than other requests. */
  maxBatchItems: number;
  /** The text of the body before, between and after its arrays. */
  frame: readonly [string, ...string[], string];
  read: (range: Range<Cursor>) => Promise<Batch<Cursor>>;
}

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
  /** The items of each array of the body, separated by commas. */
  arrays: readonly string[];
  /** The cursor of the last item; undefined at the end of the list. */
  next: Cursor | undefined;
}

/** What all lists share. */
export interface ListOptions {
  budgets: ResponseBudget;
  /** The lists in progress that take more than one short read, by family of tokens. */
  longReads: FairSemaphore;
  log: Logger;
  /** Prefix of URLs in responses, without a trailing slash; empty for path-absolute URLs. */
  baseUrl: string;
}

/** Sends a list, with the address of the next page if there is one. */
export async function sendList<Cursor extends string | number>(
  request: FastifyRequest,
  reply: FastifyReply,
  list: List<Cursor>,
  { budgets, longReads, log, baseUrl }: ListOptions,
): Promise<FastifyReply> {
  const { path, query, isShort = false } = list;
  const { caller, family } = request.grant;
  const budget = budgets.reservationFor(caller, reply.raw);
  const batches = new BatchReader(list, () => assertConnected(reply));
  const read = () => readBody(list, batches, budget);
  const body = await (isShort ? read() : longReads.run(family, read));
  if (query.limit !== undefined && batches.after !== undefined) {
    const url = `${baseUrl}${path}?${nextQuery(query, batches.after)}`;
    reply.header('link', `<${url}>; rel="next"`);
  }
  if (body instanceof Readable) {
    if (request.method === 'HEAD') return sendText(reply, jsonMediaType, Readable.from([]));
    // The status has already been sent, so the service can only abort the response.
    body.once('error', (err) => log.error({ requestId: request.id, err }, 'list aborted'));
  }
  return sendText(reply, jsonMediaType, body);
}

async function readBody<Cursor extends string | number>(
  { query, isShort = false, frame }: List<Cursor>,
  batches: Batches,
  budget: Reservation,
): Promise<string | Readable> {
  // A page is sent as a whole, because the address of the next one comes first. So are several arrays.
  const isWhole = query.limit !== undefined || frame.length > 2;
  const minChars = isWhole ? Infinity : minChunkChars;
  let arrays: readonly string[] = [];
  do {
    if (isShort) budget.assertRoom();
    else budget.reserve(Buffer.byteLength(arrays.join()) + streamBytes);
    const more = await batches.read();
    arrays = more.map((items, at) => joined(arrays[at] ?? '', items));
  } while (!batches.isDone && arrays.join().length < minChars);
  if (!batches.isDone) return createStream(frame[0] + arrays.join(), batches, frame[1]);
  const json = frame.map((text, at) => text + (arrays[at] ?? '')).join('');
  budget.reserveText(json);
  return json;
}

/** Throws once the client has disconnected. */
export function assertConnected({ raw }: FastifyReply): void {
  if (raw.destroyed) throw connectionClosed();
}

interface Batches {
  readonly isDone: boolean;
  read(): Promise<readonly string[]>;
}

/** Reads a list in batches. */
class BatchReader<Cursor extends string | number> implements Batches {
  readonly #list: List<Cursor>;
  readonly #assertWanted: () => void;
  /** The cursor after which the next batch begins; undefined after the end of the list. */
  after: Cursor | undefined;
  /** How many items of the limit remain. */
  #remaining: number;
  /** How many items to read in the next batch. */
  #batchItems: number;

  constructor(list: List<Cursor>, assertWanted: () => void) {
    this.#list = list;
    this.#assertWanted = assertWanted;
    this.after = list.after;
    this.#remaining = list.query.limit ?? Infinity;
    this.#batchItems = Math.min(firstBatchItems, list.maxBatchItems);
  }

  get isDone(): boolean {
    return this.after === undefined || this.#remaining === 0;
  }

  /** Reads the next batch. Its arrays are empty if the items have been deleted meanwhile. */
  async read(): Promise<readonly string[]> {
    for (;;) {
      const { after } = this;
      if (after === undefined) return [];
      const limit = Math.min(this.#remaining, this.#batchItems);
      this.#assertWanted();
      const { arrays, next } = await this.#list.read({ after, limit });
      const chars = arrays.join().length;
      const fitting = Math.max(minBatchItems, Math.floor((batchChars * limit) / chars));
      this.#batchItems = Math.min(fitting, this.#list.maxBatchItems);
      if (chars > 2 * batchChars && limit > minBatchItems) continue; // read fewer items
      this.#remaining -= limit;
      this.after = next;
      return arrays;
    }
  }
}

/** Streams strings. Buffers would be 10 % faster, but hold more memory until garbage collection. */
function createStream(first: string, batches: Batches, last: string): Readable {
  let json = first;
  return new Readable({
    objectMode: true,
    highWaterMark: 0, // reads no batch before the client has read the previous chunk
    async read() {
      try {
        while (json.length < minChunkChars && !batches.isDone) {
          json += prependComma((await batches.read()).join());
        }
        this.push(batches.isDone ? json + last : json);
        json = '';
        if (batches.isDone) this.push(null);
      } catch (error) {
        this.destroy(
          error instanceof Error ? error : new Error('the list was aborted', { cause: error }),
        );
      }
    },
  });
}

/** The query of the next page, with all other parameters unchanged. Arrays are repeated, as openapi.json describes it. */
function nextQuery({ limit, after: _previous, ...others }: Query, after: string | number): string {
  const parameters = Object.entries({ limit, after, ...others });
  const pairs = parameters.flatMap(([name, value]) =>
    [value ?? []].flat().map((each) => `${name}=${encodeURIComponent(each)}`),
  );
  return pairs.join('&');
}

function joined(items: string, more: string): string {
  return items === '' ? more : items + prependComma(more);
}

/** For every batch after the first one, which is never empty. */
function prependComma(json: string): string {
  return json === '' ? '' : `,${json}`;
}
