/**
 * Sends lists: short pages as text, others as a stream. Memory is bounded for any length of the list, size of its
 * plants and speed of the client. A stream reads the next batch when the client has read the previous one, and
 * batches have a maximum size.
 *
 * If the client stops reading, the stream waits until `idleTimeoutMs` (limits.ts) closes the connection.
 */
import { Readable } from 'node:stream';
import type { Caller } from '../access.ts';
import { maxShortPagePlants } from '../lists.ts';
import { defaultFields, plantFields, plantJson, type Plant, type PlantField } from '../plant.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../plant-storage.ts';
import { runInSlice } from '../time-slices.ts';
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

/** Maximum number of ids that are held in memory while a long page is sent. */
const maxPageIds = 100_000;
const pageIdBytes = 8;

/** Memory of a stream: two batches, and the copies that Node makes. */
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
  /** What a short list reads, if it has been requested already. */
  page: Promise<PlantPage> | undefined;
  budget: Reservation;
  /** Throws once the client has disconnected. */
  assertWanted: () => void;
}

type Range = Pick<PlantQuery, 'after' | 'upTo' | 'limit'>;
type Read = (range: Range, fields?: readonly PlantField[]) => Promise<PlantPage>;

/** The page that is all that a list reads; undefined for a list that is not short. */
export function shortPageOf({
  limit,
  after = 0,
  tag,
  fields = defaultFields,
}: ListQuery): PlantQuery | undefined {
  if (limit === undefined || limit > maxShortPagePlants) return undefined;
  return { limit, after, tag, fields };
}

export async function listPlants(
  { storage, caller, page, budget, assertWanted }: ListContext,
  query: ListQuery,
): Promise<ListResponse> {
  const { limit, after = 0, tag, fields = defaultFields } = query;
  const read: Read = (range, requestedFields = fields) =>
    storage.listPlants(caller, {
      ...range,
      tag,
      fields: requestedFields,
      assertWanted,
    });
  const reserve = (json: string) => budget.reserve(Buffer.byteLength(json));
  const shortPage = shortPageOf(query);
  if (shortPage !== undefined) {
    const { json, next } = await (page ??
      storage.listPlants(caller, { ...shortPage, assertWanted }));
    budget.reserveText(json);
    return { body: `[${json}]`, next };
  }

  const batches = new BatchReader(read, fields, after, limit ?? Infinity);
  const idsBytes = Math.min(limit ?? 0, maxPageIds) * pageIdBytes;
  // Checks the budget in the time slice of the first batch, before reading it. Reading is most of the work, and a list
  // that exceeds the budget must not cause it.
  let json = await batches.read(() => budget.check(2 * streamBytes + idsBytes));
  if (batches.isDone) budget.reserveText(json);
  else reserve(json);
  while (!batches.isDone && json.length < minChunkChars) {
    assertWanted();
    const more = prependComma(await batches.read());
    reserve(more);
    json += more;
  }
  if (batches.isDone) {
    return { body: `[${json}]`, next: limit === undefined ? undefined : batches.after };
  }
  budget.reserve(streamBytes + idsBytes);
  const next = limit === undefined ? undefined : await batches.collectPageIds(assertWanted);
  return { body: createStream(json, batches), next };
}

/** Reads a list in batches. */
class BatchReader {
  readonly #read: Read;
  readonly #fields: readonly PlantField[];
  /** The id after which the next batch begins; undefined after the last batch. */
  after: number | undefined;
  /** How many plants of the limit remain. */
  #remaining: number;
  /** How many plants to read in the next batch. */
  #batchPlants = firstBatchPlants;
  /** The ids of the remaining plants of a page, after collectPageIds(). */
  #pageIds: readonly number[] | undefined;

  constructor(read: Read, fields: readonly PlantField[], after: number, limit: number) {
    this.#read = read;
    this.#fields = fields;
    this.after = after;
    this.#remaining = limit;
  }

  get isDone(): boolean {
    return this.after === undefined || this.#remaining === 0;
  }

  /** Reads the next batch as JSON. Empty if its plants have been deleted meanwhile. */
  async read(check = () => {}): Promise<string> {
    for (;;) {
      const limit = Math.min(this.#remaining, this.#batchPlants);
      const ids = this.#pageIds?.slice(0, limit);
      const range = { after: this.after ?? 0, upTo: ids?.at(-1), limit };
      const { json, next } = await runInSlice(() => {
        check();
        return this.#read(range);
      });
      this.#batchPlants = batchSize(batchChars, json.length / limit);
      if (json.length > 2 * batchChars && limit > minBatchPlants) continue; // read fewer plants
      this.#remaining -= limit;
      if (ids === undefined) {
        this.after = next;
        return json;
      }
      this.after = range.upTo;
      this.#pageIds = this.#pageIds?.slice(limit);
      return next === undefined ? json : this.#readOnly(new Set(ids), range);
    }
  }

  /**
   * Collects the ids of a page, because the Link header is sent before its plants. Returns the cursor of the next
   * page; undefined if no plant follows.
   *
   * Plants that are created inside the page later are omitted, because they would exceed the limit. A page with more
   * than `maxPageIds` plants ends there, unless it is the last page.
   */
  async collectPageIds(assertWanted: () => void): Promise<number | undefined> {
    const ids: number[] = [];
    let next = this.after;
    for (let left = this.#remaining; left > 0 && next !== undefined;) {
      assertWanted();
      const range: Range = { after: next, limit: Math.min(left, maxBatchPlants) };
      const page: PlantPage = await runInSlice(() => this.#read(range, ['id']));
      const found = JSON.parse(`[${page.json}]`) as Pick<Plant, 'id'>[]; // only ids were requested
      if (ids.length < maxPageIds) ids.push(...found.map(({ id }) => id));
      left -= range.limit;
      ({ next } = page);
    }
    const isLong = ids.length >= maxPageIds;
    if (isLong && next === undefined) return undefined; // the rest of the list, including new plants
    this.#pageIds = ids;
    this.#remaining = ids.length;
    return isLong ? ids.at(-1) : next;
  }

  /** Reads the plants with these ids that still exist, and skips others that were created between them. */
  async #readOnly(ids: ReadonlySet<number>, { after, upTo }: Range): Promise<string> {
    const plants: Plant[] = [];
    for (let next: number | undefined = after; next !== undefined;) {
      const range: Range = { after: next, upTo, limit: minBatchPlants };
      const page: PlantPage = await runInSlice(() => this.#read(range, plantFields));
      const found = JSON.parse(`[${page.json}]`) as Plant[]; // all fields were requested
      plants.push(...found.filter(({ id }) => ids.has(id)));
      ({ next } = page);
    }
    return plants.map((plant) => plantJson(plant, this.#fields)).join();
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
