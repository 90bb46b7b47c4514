/**
 * Sends lists: pages as text, and lists without a limit as a stream. Memory is bounded for any length of the list, size
 * of its plants and speed of the client. A stream reads the next batch when the client has read the previous one, and
 * batches have a maximum size.
 *
 * If the client stops reading, the stream waits until `idleTimeoutMs` (limits.ts) closes the connection.
 */
import { Readable } from 'node:stream';
import type { Caller, Reach } from '../access.ts';
import { isShort } from '../lists.ts';
import { defaultFields, type PlantField } from '../plant.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../plant-storage.ts';
import type { Reservation } from './response-budget.ts';

/**
 * Minimum length of a chunk of a stream, except the last. Node buffers up to 64 KiB for a socket, and can lose the
 * event `drain` if a response is written in smaller chunks.
 */
const minChunkChars = 64 * 1024;
/** Approximate length of a batch, and its minimum and maximum number of plants. */
const batchChars = 72 * 1024;
const minBatchPlants = 50; // plants of the maximum size have about `batchChars` together
const maxBatchPlants = 1_000;
const firstBatchPlants = 128;

/** Memory of a stream, or for the next batch of a page: two batches, and the copies that Node makes. */
const streamBytes = 256 * 1024;

export interface ListQuery {
  limit?: number;
  after?: number;
  tag?: string;
  fields?: readonly PlantField[];
}

export interface ListResponse {
  body: string | Readable;
  /** The cursor of the next page; undefined without a limit, or if no plant follows. */
  next: number | undefined;
}

export interface ListContext {
  storage: PlantStorage;
  caller: Caller;
  budget: Reservation;
  /** Throws once the client has disconnected. */
  assertWanted: () => void;
}

/** The page that is all that a list reads; undefined for a list that takes more than one short read. */
export function shortPageOf(
  reach: Reach,
  { limit, after = 0, tag, fields = defaultFields }: ListQuery,
): PlantQuery | undefined {
  if (limit === undefined) return undefined;
  const page = { limit, after, tag, fields };
  return isShort(reach, page) ? page : undefined;
}

/** Sends a page that takes one short read. */
export async function sendShortPage(
  read: () => Promise<PlantPage>,
  budget: Reservation,
): Promise<ListResponse> {
  budget.assertRoom();
  const { json, next } = await read();
  budget.reserveText(json);
  return { body: `[${json}]`, next };
}

export async function sendList(
  { storage, caller, budget, assertWanted }: ListContext,
  { limit, after = 0, tag, fields = defaultFields }: ListQuery,
): Promise<ListResponse> {
  const read = (range: Pick<PlantQuery, 'after' | 'limit'>) => {
    assertWanted();
    return storage.listPlants(caller, { ...range, tag, fields, assertWanted });
  };
  const batches = new BatchReader(read, after, limit ?? Infinity);
  const minChars = limit === undefined ? minChunkChars : Infinity; // a page is sent as a whole
  let json = '';
  do {
    budget.reserve(Buffer.byteLength(json) + streamBytes);
    const more = await batches.read();
    json += json === '' ? more : prependComma(more);
  } while (!batches.isDone && json.length < minChars);
  if (!batches.isDone) return { body: createStream(json, batches), next: undefined };
  budget.reserveText(json);
  return { body: `[${json}]`, next: limit === undefined ? undefined : batches.after };
}

/** Reads a list in batches. */
class BatchReader {
  readonly #read: (range: Pick<PlantQuery, 'after' | 'limit'>) => Promise<PlantPage>;
  /** The id after which the next batch begins; undefined after the last batch. */
  after: number | undefined;
  /** How many plants of the limit remain. */
  #remaining: number;
  /** How many plants to read in the next batch. */
  #batchPlants = firstBatchPlants;

  constructor(
    read: (range: Pick<PlantQuery, 'after' | 'limit'>) => Promise<PlantPage>,
    after: number,
    limit: number,
  ) {
    this.#read = read;
    this.after = after;
    this.#remaining = limit;
  }

  get isDone(): boolean {
    return this.after === undefined || this.#remaining === 0;
  }

  /** Reads the next batch as JSON. Empty if its plants have been deleted meanwhile. */
  async read(): Promise<string> {
    for (;;) {
      const limit = Math.min(this.#remaining, this.#batchPlants);
      const { json, next } = await this.#read({ after: this.after ?? 0, limit });
      this.#batchPlants = batchSize(batchChars, json.length / limit);
      if (json.length > 2 * batchChars && limit > minBatchPlants) continue; // read fewer plants
      this.#remaining -= limit;
      this.after = next;
      return json;
    }
  }
}

function batchSize(chars: number, charsEach: number): number {
  return Math.min(maxBatchPlants, Math.max(minBatchPlants, Math.floor(chars / charsEach)));
}

/** Streams strings. Buffers would be 10 % faster, but hold more memory until garbage collection. */
function createStream(first: string, batches: BatchReader): Readable {
  let json = `[${first}`;
  return new Readable({
    objectMode: true,
    highWaterMark: 0, // reads no batch before the client has read the previous chunk
    async read() {
      try {
        while (json.length < minChunkChars && !batches.isDone) {
          json += prependComma(await batches.read());
        }
        this.push(batches.isDone ? `${json}]` : json);
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

/** For every batch after the first one, which is never empty. */
function prependComma(json: string): string {
  return json === '' ? '' : `,${json}`;
}
